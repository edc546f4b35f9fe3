package results

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/disk"
)

// Options say how to open a ledger.
type Options struct {
	// ReadOnly opens an existing ledger without writing to it or beside it
	// more than SQLite must. A ledger on a read-only medium opens so, and one
	// with an older schema is read through a migrated copy.
	ReadOnly bool

	fsType  func(path string) string // of the folder; nil asks the system
	version int                      // schema to stop at; 0: the newest
	noSync  bool                     // do not wait for the disk: for tests that make many ledgers
}

// busyTimeout is how long SQLite itself waits for another writer.
const busyTimeout = 10 * time.Second

// pageSize is that of new files, in bytes.
const pageSize = 8192

// Store is an open ledger. It may be used by several goroutines: writes queue
// behind one connection, reads have their own.
type Store struct {
	path     string
	writer   *sql.DB // nil when read-only
	reader   *sql.DB
	tempDir  string // of a migrated copy
	readOnly bool
}

// Open opens the ledger at path, creating it and its folders as needed (0700
// and 0600). A file that is not a ledger, is cut short or was written by a newer
// program is refused and left as it is: see IsDataFault.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	exists, err := inspect(path)
	if err != nil {
		return nil, err
	}
	if opts.ReadOnly {
		if !exists {
			return nil, &Fault{Path: path, Kind: ErrNotFound, Detail: "no results are stored there", Hint: "run something first, or give --db the right path"}
		}
		return openReadOnly(ctx, path)
	}
	if err := prepareFile(path, opts); err != nil {
		return nil, err
	}
	s := &Store{path: path}
	if err := s.openWriter(ctx, opts); err != nil {
		s.Close()
		return nil, faultOf(path, err)
	}
	if s.reader, err = connect(path, "mode=rw&_query_only=1"); err != nil {
		s.Close()
		return nil, faultOf(path, err)
	}
	s.reader.SetMaxOpenConns(4)
	return s, nil
}

// Path is the absolute path of the file.
func (s *Store) Path() string { return s.path }

// Close closes the ledger; the last program to close it folds the write-ahead
// log back into the file.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.tempDir != "" {
		errs = append(errs, os.RemoveAll(s.tempDir))
	}
	return errors.Join(errs...)
}

func prepareFile(path string, opts Options) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("results database: %w", err)
	}
	ask := opts.fsType
	if ask == nil {
		ask = fileSystemOf
	}
	if kind := ask(dir); isNetworkFS(kind) {
		return &Fault{
			Path: path, Kind: ErrNetworkFS, Detail: "the file system is " + kind,
			Hint: "keep the database on a local disk (--db PATH) and copy it with `bmoe db export --format db`",
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("results database: %w", err)
	}
	return f.Close()
}

func fileSystemOf(dir string) string {
	usage, err := disk.Usage(dir)
	if err != nil {
		return ""
	}
	return usage.Fstype
}

// isNetworkFS names file systems whose locks or shared mappings do not reach
// the other hosts that may have the file open.
func isNetworkFS(kind string) bool {
	kind = strings.ToLower(kind)
	for _, prefix := range []string{"nfs", "smb", "cifs", "afs", "ncp", "9p", "v9fs", "ceph", "lustre", "gpfs", "sshfs", "fuse.sshfs"} {
		if strings.HasPrefix(kind, prefix) {
			return true
		}
	}
	return false
}

func dsn(path, params string) string {
	u := url.URL{Path: path}
	return "file:" + u.EscapedPath() + "?" + params
}

func connect(path, params string) (*sql.DB, error) {
	params += fmt.Sprintf("&_busy_timeout=%d&_foreign_keys=1", busyTimeout.Milliseconds())
	if !strings.Contains(params, "_synchronous") {
		params += "&_synchronous=FULL"
	}
	return sql.Open(driverName, dsn(path, params))
}

func (s *Store) openWriter(ctx context.Context, opts Options) (err error) {
	params := "mode=rw&_txlock=immediate"
	if opts.noSync {
		params += "&_synchronous=OFF"
	}
	if s.writer, err = connect(s.path, params); err != nil {
		return err
	}
	s.writer.SetMaxOpenConns(1)
	// Rows of some two kilobytes fill large pages better; the size only counts
	// for a file that is still empty.
	if _, err := s.writer.ExecContext(ctx, fmt.Sprintf("PRAGMA page_size = %d", pageSize)); err != nil {
		return err
	}
	// Several programs may create or migrate one file at once: all but one wait.
	return retryBusy(ctx, func() error {
		if err := upgrade(ctx, s.writer, s.path, opts.version); err != nil {
			return err
		}
		var mode string
		if err := s.writer.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
			return err
		}
		if mode != "wal" {
			return &Fault{Path: s.path, Kind: ErrNetworkFS, Detail: "journal mode stays " + mode, Hint: "keep the database on a local disk (--db PATH)"}
		}
		_, err := s.writer.ExecContext(ctx, "PRAGMA journal_size_limit = 67108864")
		return err
	})
}

// retryBusy goes on where SQLite's own wait does not reach (the switch to the
// write-ahead log, say), for two minutes at most.
func retryBusy(ctx context.Context, do func() error) error {
	deadline := time.Now().Add(2 * time.Minute)
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := do()
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}
