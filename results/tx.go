package results

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/bmoe/bmoe/results/record"
)

// queryer is what a connection, a pool and a transaction have in common.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// write runs fn in one transaction, all or nothing. Once it has begun a
// cancelled context does not undo it: what was measured must be kept, even by a
// program that is being stopped.
func (s *Store) write(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	if s.writer == nil {
		return &Fault{Path: s.path, Kind: ErrReadOnly, Hint: "open it without read-only, or give --db another path"}
	}
	ctx = context.WithoutCancel(ctx)
	err := retryBusy(ctx, func() error {
		tx, err := s.writer.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := fn(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	})
	return s.fault(err)
}

// put inserts a body under its id. An id that is there with the same body is
// fine; with another body it is a conflict.
func put(ctx context.Context, tx *sql.Tx, table string, p record.Part) error {
	res, err := tx.ExecContext(ctx, "INSERT INTO "+table+" (id, body) VALUES (?, ?) ON CONFLICT (id) DO NOTHING", p.ID, string(p.Body))
	if err != nil {
		return fmt.Errorf("%s: %w", table, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return err
	}
	var same bool
	if err := tx.QueryRowContext(ctx, "SELECT body = ? FROM "+table+" WHERE id = ?", string(p.Body), p.ID).Scan(&same); err != nil {
		return fmt.Errorf("%s: %w", table, err)
	}
	if !same {
		return fmt.Errorf("%s %s: %w", table, short(p.ID), ErrConflict)
	}
	return nil
}

func putPrivate(ctx context.Context, tx *sql.Tx, kind, owner string, body []byte) error {
	if body == nil {
		return nil
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO private (owner_id, kind, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", owner, kind, string(body))
	if err != nil {
		return fmt.Errorf("private text: %w", err)
	}
	return nil
}

func short(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}

// resolve finds the one id of a table that begins with prefix.
func resolve(ctx context.Context, q queryer, table, prefix string) (string, error) {
	if prefix == "" {
		return "", fmt.Errorf("%s: an empty id: %w", table, ErrNotFound)
	}
	// GLOB uses the primary key; ids are hexadecimal, so nothing needs escaping
	// once anything else is refused.
	for _, c := range prefix {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return "", fmt.Errorf("%s %q: %w", table, prefix, ErrNotFound)
		}
	}
	ids, err := column(ctx, q, "SELECT id FROM "+table+" WHERE id GLOB ? || '*' ORDER BY id LIMIT 2", prefix)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", fmt.Errorf("%s %q: %w", table, prefix, ErrNotFound)
	case len(ids) == 1 || ids[0] == prefix: // a whole id comes before those it begins
		return ids[0], nil
	}
	return "", fmt.Errorf("%s %q: %w; type more of the id", table, prefix, ErrAmbiguous)
}

func notFound(err error, table, id string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s %q: %w", table, id, ErrNotFound)
	}
	return err
}
