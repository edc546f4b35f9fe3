package results

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/bmoe/bmoe/results/record"
)

// SaveRun stores a run with all it refers to in one transaction and returns its
// id. expID is "" for a run of no experiment; slot and attempt are its place in
// one. Once SaveRun has returned, the run survives a power cut. Saving the same
// run again changes nothing.
func (s *Store) SaveRun(ctx context.Context, r record.Run, expID string, slot record.Slot, attempt int) (string, error) {
	ids, err := s.SaveRuns(ctx, []record.StoredRun{{Run: r, ExperimentID: expID, Slot: slot, Attempt: attempt}})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// SaveRuns stores several runs in one transaction: an import, or a batch.
func (s *Store) SaveRuns(ctx context.Context, runs []record.StoredRun) ([]string, error) {
	parts := make([]*record.Parts, len(runs))
	ids := make([]string, len(runs))
	for i, r := range runs {
		p, err := record.Dissect(r.Run, r.ExperimentID, r.Slot, r.Attempt)
		if err != nil {
			return nil, fmt.Errorf("run: %w: %w", ErrInvalid, err)
		}
		parts[i], ids[i] = p, p.Run.ID
	}
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for i, p := range parts {
			if err := checkPlace(ctx, tx, runs[i]); err != nil {
				return err
			}
			if err := putRun(ctx, tx, p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

func putRun(ctx context.Context, tx *sql.Tx, p *record.Parts) error {
	if err := putShared(ctx, tx, p); err != nil {
		return err
	}
	if err := put(ctx, tx, "run", p.Run); err != nil {
		return err
	}
	for table, data := range map[string][]byte{"samples": p.Samples, "tokens": p.Tokens} {
		if data == nil {
			continue
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+table+" (run_id, data) VALUES (?, ?) ON CONFLICT DO NOTHING", p.Run.ID, data); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	return putPrivate(ctx, tx, "run", p.Run.ID, p.Private)
}

// checkPlace refuses a run of an arm its experiment does not have.
func checkPlace(ctx context.Context, tx *sql.Tx, r record.StoredRun) error {
	if r.ExperimentID == "" {
		return nil
	}
	var arms int
	err := tx.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM json_each(e.body, '$.arms') a WHERE a.value ->> '$.name' = ?)
		FROM experiment e WHERE e.id = ?`, r.Slot.Arm, r.ExperimentID).Scan(&arms)
	if err != nil {
		return notFound(err, "experiment", r.ExperimentID)
	}
	if arms == 0 {
		return fmt.Errorf("run: experiment %s has no arm %q: %w", short(r.ExperimentID), r.Slot.Arm, ErrInvalid)
	}
	return nil
}

// RunFilter chooses runs. Its zero value chooses all that count.
type RunFilter struct {
	Experiment  string // id or prefix
	Model       string // id or prefix
	Machine     string // id or prefix
	State       string
	Since       string // RFC 3339, or a date; inclusive
	Until       string // the same; exclusive
	IncludeVoid bool   // also runs that were declared void, themselves or with their experiment
	Samples     bool   // load the per-token times
	Text        bool   // load what is private: paths, prompt, text, tokens, stderr
	Lean        bool   // leave out the surroundings before and after
	Limit       int    // newest so many; 0: all
}

// where builds the condition of a filter; prefixes are resolved first.
func (s *Store) where(ctx context.Context, f RunFilter) (cond string, args []any, err error) {
	cond = "1"
	add := func(c string, v any) {
		cond += " AND " + c
		args = append(args, v)
	}
	for _, ref := range []struct{ table, prefix string }{{"experiment", f.Experiment}, {"model", f.Model}, {"machine", f.Machine}} {
		if ref.prefix == "" {
			continue
		}
		id, err := resolve(ctx, s.reader, ref.table, ref.prefix)
		if err != nil {
			return "", nil, err
		}
		add("r."+ref.table+"_id = ?", id)
	}
	if f.State != "" {
		add("r.state = ?", f.State)
	}
	for _, limit := range []struct{ cond, text string }{{"r.started_at >= ?", f.Since}, {"r.started_at < ?", f.Until}} {
		if limit.text == "" {
			continue
		}
		at, err := normalTime(ctx, s.reader, limit.text)
		if err != nil {
			return "", nil, err
		}
		add(limit.cond, at)
	}
	if !f.IncludeVoid {
		cond += " AND NOT EXISTS (SELECT 1 FROM event v WHERE v.kind = 'void' AND v.subject IN (r.id, r.experiment_id))"
	}
	return cond, args, nil
}

// normalTime writes a date or an RFC 3339 time as the time columns do.
func normalTime(ctx context.Context, q queryer, text string) (string, error) {
	var at sql.NullString
	if err := q.QueryRowContext(ctx, "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', ?)", text).Scan(&at); err != nil {
		return "", err
	}
	// SQLite also understands "now" and bare numbers, which are no times here.
	if !at.Valid || len(text) < len("2006-01-02") || text[4] != '-' {
		return "", fmt.Errorf("%q is neither a date nor an RFC 3339 time: %w", text, ErrInvalid)
	}
	return at.String, nil
}

// Runs returns the runs a filter chooses, oldest first. They share plans and
// maps where the ledger holds them once: treat them as read-only.
func (s *Store) Runs(ctx context.Context, f RunFilter) ([]record.StoredRun, error) {
	cond, args, err := s.where(ctx, f)
	if err != nil {
		return nil, s.fault(err)
	}
	order := "ORDER BY r.started_at, r.id"
	if f.Limit > 0 {
		order = fmt.Sprintf("ORDER BY r.started_at DESC, r.id DESC LIMIT %d", f.Limit)
	}
	load := newLoader(s, f)
	out, err := load.load(ctx, cond, order, args)
	if f.Limit > 0 {
		slices.Reverse(out)
	}
	return out, err
}

// Run returns one run whole; a prefix of its id is enough.
func (s *Store) Run(ctx context.Context, id string) (record.StoredRun, error) {
	id, err := resolve(ctx, s.reader, "run", id)
	if err != nil {
		return record.StoredRun{}, s.fault(err)
	}
	load := newLoader(s, RunFilter{Samples: true, Text: true})
	found, err := load.load(ctx, "r.id = ?", "", []any{id})
	if err != nil {
		return record.StoredRun{}, err
	}
	return found[0], nil
}
