package results

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/bmoe/bmoe/results/record"
)

// Import stores runs that another program measured, all or none, and says how
// many are new. source is what the log calls them.
func (s *Store) Import(ctx context.Context, runs []record.Run, source string) (MergeReport, error) {
	rep := MergeReport{Tables: map[string]TableCount{}, Conflicts: []Conflict{}}
	parts := make([]*record.Parts, len(runs))
	for i, r := range runs {
		p, err := record.Dissect(r, "", record.Slot{}, 0)
		if err != nil {
			return rep, fmt.Errorf("run %d of %s: %w: %w", i+1, source, ErrInvalid, err)
		}
		if what := rowFault("run", p.Run.ID, p.Run.Body); what != "" {
			return rep, fmt.Errorf("run %d of %s: %s: %w", i+1, source, what, ErrInvalid)
		}
		parts[i] = p
	}
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var before, after int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM run").Scan(&before); err != nil {
			return err
		}
		for _, p := range parts {
			if err := putRun(ctx, tx, p); err != nil {
				return err
			}
		}
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM run").Scan(&after); err != nil {
			return err
		}
		rep.Inserted, rep.Present = after-before, len(runs)-(after-before)
		rep.Tables["run"] = TableCount{rep.Inserted, rep.Present}
		return logImport(ctx, tx, "import", source, rep.Inserted, rep.Present)
	})
	return rep, err
}

// LogEntry is one line of what came into a ledger from elsewhere or was pruned
// from it.
type LogEntry struct {
	At       time.Time `json:"at"`
	Kind     string    `json:"kind"` // merge, import, prune
	Source   string    `json:"source"`
	Inserted int       `json:"inserted"`
	Present  int       `json:"present"`
	Detail   string    `json:"detail,omitempty"`
}

// Log returns the newest n entries, oldest first.
func (s *Store) Log(ctx context.Context, n int) ([]LogEntry, error) {
	var out []LogEntry
	err := s.each(ctx, `SELECT at, kind, source, inserted, present, detail FROM
		(SELECT * FROM import_log ORDER BY seq DESC LIMIT ?) ORDER BY seq`, []any{n}, func(rows *sql.Rows) error {
		var e LogEntry
		var at string
		if err := rows.Scan(&at, &e.Kind, &e.Source, &e.Inserted, &e.Present, &e.Detail); err != nil {
			return err
		}
		var err error
		if e.At, err = time.Parse(time.RFC3339, at); err != nil {
			return fmt.Errorf("import log: %w: %w", ErrCorrupt, err)
		}
		out = append(out, e)
		return nil
	})
	return out, err
}
