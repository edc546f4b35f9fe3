package results

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// openReadOnly opens an existing ledger for reading. Where SQLite can make its
// shared-memory file it sees what other programs write; on a read-only medium
// the file is opened as immutable.
func openReadOnly(ctx context.Context, path string) (*Store, error) {
	s := &Store{path: path, readOnly: true}
	version, _, err := s.attachReader(ctx, path)
	if err != nil {
		s.Close()
		return nil, faultOf(path, err)
	}
	steps, err := migrations()
	if err != nil {
		s.Close()
		return nil, err
	}
	switch {
	case version > len(steps):
		s.Close()
		return nil, newer(path, version, len(steps))
	case version < len(steps):
		if err := s.readCopy(ctx, path); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// readWays are the ways to read a ledger, the best first. A connection that may
// write, though it never does, takes its log and shared memory away again when
// it is the last to close; a medium that cannot be written to needs the others.
var readWays = []string{"mode=rw&_query_only=1", "mode=ro", "mode=ro&immutable=1"}

// attachReader opens the file for reading and says how that worked.
func (s *Store) attachReader(ctx context.Context, path string) (version int, way string, err error) {
	for _, way = range readWays {
		if s.reader != nil {
			s.reader.Close()
		}
		if way == readWays[2] && walSize(path) > 0 { // it would not be looked at
			return 0, "", &Fault{
				Path: path, Kind: ErrReadOnly, Detail: "its write-ahead log " + filepath.Base(path) + "-wal holds results that are not in it yet",
				Hint: "copy both files to a folder that can be written and open the copy", cause: err,
			}
		}
		if s.reader, err = connect(path, way); err != nil {
			return 0, "", err
		}
		s.reader.SetMaxOpenConns(4)
		if version, err = probeReader(ctx, s.reader); err == nil || IsDataFault(faultOf(path, err)) {
			return version, way, err
		}
	}
	return 0, "", err
}

// probeReader reads the version and one page of the schema.
func probeReader(ctx context.Context, db *sql.DB) (int, error) {
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return 0, err
	}
	return userVersion(ctx, db)
}

// readCopy reads an older ledger through a migrated copy, leaving it as it is.
func (s *Store) readCopy(ctx context.Context, path string) error {
	s.reader.Close()
	s.reader = nil
	dir, err := os.MkdirTemp("", "bmoe-db-")
	if err != nil {
		return err
	}
	s.tempDir = dir
	copied, err := migratedCopy(ctx, path, dir)
	if err != nil {
		return err
	}
	s.reader, err = connect(copied, "mode=ro")
	return err
}

// copyName is what a migrated copy is called in its folder.
const copyName = "copy.db"

// migratedCopy copies a ledger (with its log) into dir and brings the copy to
// the newest schema.
func migratedCopy(ctx context.Context, path, dir string) (string, error) {
	target := filepath.Join(dir, copyName)
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(path+suffix, target+suffix); err != nil {
			if suffix != "" && os.IsNotExist(err) {
				continue
			}
			return "", fmt.Errorf("copy of %s: %w", path, err)
		}
	}
	db, err := connect(target, "mode=rw&_txlock=immediate")
	if err != nil {
		return "", err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	steps, err := migrations()
	if err != nil {
		return "", err
	}
	if err := applySteps(ctx, db, steps); err != nil {
		return "", faultOf(path, err)
	}
	return target, nil
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(dst, src); err != nil {
		dst.Close()
		return err
	}
	return dst.Close()
}
