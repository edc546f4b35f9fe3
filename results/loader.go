package results

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// loader puts runs together again. What many runs share is decoded once.
type loader struct {
	s           *Store
	samples     bool
	text        bool
	machines    map[string]record.Machine
	builds      map[string]record.Build
	models      map[string]record.Model
	configs     map[string]config.Config
	plans       map[string]*planner.Plan
	predictions map[string]*record.Prediction
}

func newLoader(s *Store, f RunFilter) *loader {
	return &loader{
		s: s, samples: f.Samples, text: f.Text,
		machines: map[string]record.Machine{}, builds: map[string]record.Build{}, models: map[string]record.Model{},
		configs: map[string]config.Config{}, plans: map[string]*planner.Plan{}, predictions: map[string]*record.Prediction{},
	}
}

func (l *loader) query(cond, order string) string {
	samples, tokens, private := "NULL", "NULL", "NULL"
	if l.samples {
		samples = "(SELECT data FROM samples WHERE run_id = r.id)"
	}
	if l.text {
		tokens = "(SELECT data FROM tokens WHERE run_id = r.id)"
		private = "(SELECT body FROM private WHERE owner_id = r.id)"
	}
	return `SELECT r.id, r.body, b.body, a.body, ` + samples + `, ` + tokens + `, ` + private + `
		FROM run r JOIN environment b ON b.id = r.env_before_id JOIN environment a ON a.id = r.env_after_id
		WHERE ` + cond + ` ` + order
}

// stored is a run's row with the rows that belong to it alone.
type stored struct {
	id                                             string
	body, before, after, samples, tokens, personal sql.RawBytes
}

func (l *loader) row(ctx context.Context, rows *sql.Rows) (record.StoredRun, error) {
	var row stored
	if err := rows.Scan(&row.id, &row.body, &row.before, &row.after, &row.samples, &row.tokens, &row.personal); err != nil {
		return record.StoredRun{}, err
	}
	r, err := l.assemble(ctx, &row)
	if err != nil {
		return r, fmt.Errorf("run %s: %w", short(row.id), err)
	}
	return r, nil
}

func (l *loader) assemble(ctx context.Context, row *stored) (record.StoredRun, error) {
	var b record.RunBody
	if err := decode(row.body, &b); err != nil {
		return record.StoredRun{}, err
	}
	out := record.StoredRun{Run: b.Run, ExperimentID: b.ExperimentID, Attempt: b.Attempt}
	if b.Slot != nil {
		out.Slot = *b.Slot
	}
	r := &out.Run
	r.RunID = row.id
	if err := decode(row.before, &r.EnvBefore); err != nil {
		return out, err
	}
	if err := decode(row.after, &r.EnvAfter); err != nil {
		return out, err
	}
	if err := l.shared(ctx, &b, r); err != nil {
		return out, err
	}
	if err := unpack(row, r); err != nil {
		return out, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return out, restore(row.personal, r)
}

func unpack(row *stored, r *record.Run) (err error) {
	cols, err := record.UnpackSamples(row.samples)
	if err != nil {
		return err
	}
	r.TokenNS, r.TokenWaitNS, r.TokenManageNS = cols.NS, cols.WaitNS, cols.ManageNS
	r.Tokens, err = record.UnpackTokens(row.tokens)
	return err
}

func restore(private []byte, r *record.Run) error {
	if len(private) == 0 {
		return nil
	}
	var p record.Private
	if err := decode(private, &p); err != nil {
		return err
	}
	if r.Plan != nil { // shared with other runs
		plan := *r.Plan
		plan.Decisions = slices.Clone(plan.Decisions)
		r.Plan = &plan
	}
	p.RestoreRun(r)
	return nil
}

// shared fills in what the run's body only names.
func (l *loader) shared(ctx context.Context, b *record.RunBody, r *record.Run) (err error) {
	if r.Machine, err = fetch(ctx, l, l.machines, "machine", b.Machine); err != nil {
		return err
	}
	r.Machine.ID = b.Machine
	if r.Build, err = fetch(ctx, l, l.builds, "build", b.Build); err != nil {
		return err
	}
	r.Build.ID = b.Build
	if r.Model, err = fetch(ctx, l, l.models, "model", b.Model); err != nil {
		return err
	}
	r.Model.ID, r.Model.Name = b.Model, b.ModelName
	if r.Config, err = fetch(ctx, l, l.configs, "config", b.Config); err != nil {
		return err
	}
	if b.Plan != "" {
		if r.Plan, err = fetch(ctx, l, l.plans, "plan", b.Plan); err != nil {
			return err
		}
	}
	if b.Prediction != "" {
		r.Prediction, err = fetch(ctx, l, l.predictions, "prediction", b.Prediction)
	}
	return err
}

func fetch[T any](ctx context.Context, l *loader, cache map[string]T, table, id string) (T, error) {
	if v, ok := cache[id]; ok {
		return v, nil
	}
	var v T
	var body []byte
	if err := l.s.reader.QueryRowContext(ctx, "SELECT body FROM "+table+" WHERE id = ?", id).Scan(&body); err != nil {
		return v, notFound(err, table, id)
	}
	if err := decode(body, &v); err != nil {
		return v, fmt.Errorf("%s %s: %w", table, short(id), err)
	}
	cache[id] = v
	return v, nil
}

func decode(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// voids adds why runs do not count.
func (l *loader) voids(ctx context.Context, runs []record.StoredRun) error {
	why := map[string][]string{}
	err := l.s.each(ctx, "SELECT subject, coalesce(body ->> '$.why', '') FROM event WHERE kind = 'void' ORDER BY at, id", nil, func(rows *sql.Rows) error {
		var subject, text string
		if err := rows.Scan(&subject, &text); err != nil {
			return err
		}
		why[subject] = append(why[subject], text)
		return nil
	})
	if err != nil || len(why) == 0 {
		return err
	}
	for i := range runs {
		r := &runs[i]
		r.Void = append(r.Void, why[r.ExperimentID]...)
		r.Void = append(r.Void, why[r.Run.RunID]...)
	}
	return nil
}
