package results

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// PruneOptions say what to give up. Nothing is given up that is not named.
type PruneOptions struct {
	Before    string // of what ran before this time (RFC 3339 or a date); "" is any time
	Samples   bool   // per-token times
	Tokens    bool   // generated token ids
	Text      bool   // paths, prompts, answers, stderr
	Traces    bool   // routing traces
	VoidRuns  bool   // runs that were declared void, with all that is theirs
	StaleOnly bool   // verdicts computed before later runs came in
	DryRun    bool
}

// PruneReport counts the rows given up, by table.
type PruneReport struct {
	Rows  map[string]int64 `json:"rows"`
	Bytes int64            `json:"bytes"` // of their content
}

// Prune deletes what the options name and writes that into the log. The space
// is reused; Vacuum gives it back to the system. A later merge from a ledger
// that still has the rows brings them back.
func (s *Store) Prune(ctx context.Context, o PruneOptions) (PruneReport, error) {
	rep := PruneReport{Rows: map[string]int64{}}
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rep = PruneReport{Rows: map[string]int64{}}
		old, args, err := before(ctx, tx, o.Before)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO prune_gate VALUES (1)"); err != nil {
			return err
		}
		for _, step := range o.steps(old) {
			if err := step.run(ctx, tx, args, &rep); err != nil {
				return err
			}
		}
		if o.StaleOnly {
			if err := pruneStale(ctx, tx, &rep); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM prune_gate"); err != nil {
			return err
		}
		if o.DryRun {
			return errDryRun
		}
		return logPrune(ctx, tx, o, &rep)
	})
	if errors.Is(err, errDryRun) {
		err = nil
	}
	return rep, err
}

var errDryRun = errors.New("dry run")

// before checks the time and returns the runs it means.
func before(ctx context.Context, tx *sql.Tx, at string) (runs string, args []any, err error) {
	if at == "" {
		return "SELECT id FROM run", nil, nil
	}
	normal, err := normalTime(ctx, tx, at)
	if err != nil {
		return "", nil, err
	}
	return "SELECT id FROM run WHERE started_at < ?1", []any{normal}, nil
}

type pruneStep struct{ table, content, cond string }

func (o PruneOptions) steps(old string) []pruneStep {
	var steps []pruneStep
	if o.Samples {
		steps = append(steps, pruneStep{"samples", "data", "run_id IN (" + old + ")"})
	}
	if o.Tokens {
		steps = append(steps, pruneStep{"tokens", "data", "run_id IN (" + old + ")"})
	}
	if o.Text {
		steps = append(steps, pruneStep{"private", "body", "owner_id IN (" + old + ")"})
	}
	if o.Traces {
		steps = append(steps, pruneStep{"trace", "data", "run_id IS NULL OR run_id IN (" + old + ")"})
	}
	if !o.VoidRuns {
		return steps
	}
	void := "IN (SELECT id FROM run r WHERE id IN (" + old + ") AND EXISTS (SELECT 1 FROM void v WHERE v.subject IN (r.id, r.experiment_id)))"
	for _, t := range []pruneStep{
		{"samples", "data", "run_id"},
		{"tokens", "data", "run_id"},
		{"private", "body", "owner_id"},
		{"trace", "data", "run_id"},
		{"histogram", "data", "run_id"},
	} {
		steps = append(steps, pruneStep{t.table, t.content, t.cond + " " + void})
	}
	return append(steps,
		// The statements go last, for they say which runs are meant; those
		// about an experiment stay with it.
		pruneStep{"run", "body", "id " + void},
		pruneStep{"event", "body", "subject NOT IN (SELECT id FROM run UNION ALL SELECT id FROM experiment)"})
}

func (p pruneStep) run(ctx context.Context, tx *sql.Tx, args []any, rep *PruneReport) error {
	if !strings.Contains(p.cond, "?1") {
		args = nil
	}
	var bytes int64
	if err := tx.QueryRowContext(ctx, "SELECT coalesce(sum(length(CAST("+p.content+" AS BLOB))), 0) FROM "+p.table+" WHERE "+p.cond, args...).Scan(&bytes); err != nil {
		return err
	}
	res, err := tx.ExecContext(ctx, "DELETE FROM "+p.table+" WHERE "+p.cond, args...)
	if err != nil {
		return fmt.Errorf("pruning %s: %w", p.table, err)
	}
	n, err := res.RowsAffected()
	if n > 0 {
		rep.Rows[p.table] += n
	}
	rep.Bytes += bytes
	return err
}

// pruneStale drops verdicts whose experiment has other runs now.
func pruneStale(ctx context.Context, tx *sql.Tx, rep *PruneReport) error {
	type row struct{ id, experiment, inputs string }
	var all []row
	rows, err := tx.QueryContext(ctx, "SELECT id, experiment_id, inputs FROM verdict")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.id, &r.experiment, &r.inputs); err != nil {
			return err
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, r := range all {
		inputs, err := verdictInputs(ctx, tx, r.experiment)
		if err != nil {
			return err
		}
		if inputs == r.inputs {
			continue
		}
		if err := (pruneStep{"verdict", "body", "id = ?1"}).run(ctx, tx, []any{r.id}, rep); err != nil {
			return err
		}
	}
	return nil
}

func logPrune(ctx context.Context, tx *sql.Tx, o PruneOptions, rep *PruneReport) error {
	var n int64
	for _, rows := range rep.Rows {
		n += rows
	}
	if n == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO import_log (at, kind, source, inserted, present, detail)
		VALUES (strftime('%Y-%m-%dT%H:%M:%SZ'), 'prune', '', 0, 0, ?)`, fmt.Sprintf("%d rows, before %q", n, o.Before))
	return err
}

// Vacuum rewrites the file without unused pages and folds the log into it.
func (s *Store) Vacuum(ctx context.Context) error {
	if s.writer == nil {
		return &Fault{Path: s.path, Kind: ErrReadOnly, Hint: "give --db a path that can be written"}
	}
	return s.fault(retryBusy(ctx, func() error {
		if _, err := s.writer.ExecContext(ctx, "VACUUM"); err != nil {
			return err
		}
		_, err := s.writer.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
		return err
	}))
}
