package results

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema: the statements that lead to version.
type migration struct {
	version int
	name    string
	sql     string
}

// migrations returns the steps in order; versions count from 1 without a gap.
func migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var steps []migration
	for i, name := range names {
		base := strings.TrimPrefix(name, "migrations/")
		number, _, _ := strings.Cut(base, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: expected number %03d", base, i+1)
		}
		text, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, migration{version, base, string(text)})
	}
	return steps, nil
}

// SchemaVersion is the schema this program writes.
func SchemaVersion() int {
	steps, err := migrations()
	if err != nil {
		return 0
	}
	return len(steps)
}

func userVersion(ctx context.Context, q queryer) (v int, err error) {
	err = q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v)
	return v, err
}

// upgrade brings the file behind db to the newest schema. An existing ledger is
// copied first. Two programs may come here at once: the version is read again
// under the lock.
func upgrade(ctx context.Context, db *sql.DB, path string, target int) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	if target == 0 {
		target = len(steps)
	}
	have, err := userVersion(ctx, db)
	if err != nil {
		return err
	}
	if have > len(steps) {
		return newer(path, have, len(steps))
	}
	if have >= target {
		return nil
	}
	if have > 0 {
		if err := backup(ctx, db, path, have); err != nil {
			return err
		}
	}
	return applySteps(ctx, db, steps[:target])
}

func applySteps(ctx context.Context, db *sql.DB, steps []migration) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	have, err := userVersion(ctx, tx)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if step.version <= have {
			continue
		}
		if _, err := tx.ExecContext(ctx, step.sql); err != nil {
			return fmt.Errorf("migration %s: %w", step.name, err)
		}
	}
	if have < len(steps) {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", appID, len(steps))); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// backup copies the ledger beside itself before its schema changes.
func backup(ctx context.Context, db *sql.DB, path string, version int) error {
	name := fmt.Sprintf("%s.v%d.bak", path, version)
	for i := 2; ; i++ {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			f.Close()
			break
		}
		if !os.IsExist(err) {
			return fmt.Errorf("backup before migrating: %w", err)
		}
		name = fmt.Sprintf("%s.v%d-%d.bak", path, version, i)
	}
	// VACUUM INTO accepts an existing empty file and sees the write-ahead log.
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", name); err != nil {
		os.Remove(name)
		return fmt.Errorf("backup before migrating: %w", faultOf(name, err))
	}
	return nil
}

func newer(path string, have, know int) error {
	return &Fault{
		Path: path, Kind: ErrNewer, Detail: fmt.Sprintf("schema %d, this program knows up to %d", have, know),
		Hint: "update bmoe; nothing was changed",
	}
}
