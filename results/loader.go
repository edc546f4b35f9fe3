package results

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// loader puts runs together again. What many runs share is decoded once.
type loader struct {
	s        *Store
	samples  bool
	text     bool
	machines map[string]record.Machine
	builds   map[string]record.Build
	models   map[string]record.Model
	configs  map[string]config.Config
	plans    map[string]*planner.Plan
}

func newLoader(s *Store, f RunFilter) *loader {
	return &loader{
		s: s, samples: f.Samples, text: f.Text,
		machines: map[string]record.Machine{}, builds: map[string]record.Build{}, models: map[string]record.Model{},
		configs: map[string]config.Config{}, plans: map[string]*planner.Plan{},
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
	return `SELECT r.id, r.body, b.body, a.body, p.body, ` + samples + `, ` + tokens + `, ` + private + `
		FROM run r JOIN environment b ON b.id = r.env_before_id JOIN environment a ON a.id = r.env_after_id
		LEFT JOIN prediction p ON p.id = r.prediction_id
		WHERE ` + cond + ` ` + order
}

// stored is a run's row with the rows that belong to it alone.
type stored struct {
	id                                                       string
	body, before, after, expected, samples, tokens, personal []byte
}

// decoded is a run without what it shares with others.
type decoded struct {
	run     record.StoredRun
	shares  shares
	private record.Private
}

// shares are the ids of what a run shares with others.
type shares struct{ machine, build, model, modelName, config, plan string }

// chunk is how many rows are decoded together, beside the reading of the next.
const chunk = 256

// load reads runs and decodes them on all processors, in the order of rows.
func (l *loader) load(ctx context.Context, query string, args []any) ([]record.StoredRun, error) {
	var group errgroup.Group
	var chunks [][]decoded
	var rows []stored
	flush := func() {
		batch, into := rows, make([]decoded, len(rows))
		rows, chunks = nil, append(chunks, into)
		group.Go(func() error { return decodeAll(batch, into) })
	}
	err := l.s.each(ctx, query, args, func(r *sql.Rows) error {
		var row stored
		if err := r.Scan(&row.id, &row.body, &row.before, &row.after, &row.expected, &row.samples, &row.tokens, &row.personal); err != nil {
			return err
		}
		if rows = append(rows, row); len(rows) == chunk {
			flush()
		}
		return nil
	})
	flush()
	if werr := group.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		return nil, err
	}
	out := make([]record.StoredRun, 0, chunk*(len(chunks)-1)+len(chunks[len(chunks)-1]))
	for _, c := range chunks {
		for i := range c {
			if err := l.fill(ctx, &c[i]); err != nil {
				return nil, fmt.Errorf("run %s: %w", short(c[i].run.Run.RunID), err)
			}
			out = append(out, c[i].run)
		}
	}
	return out, l.voids(ctx, out)
}

func decodeAll(rows []stored, into []decoded) error {
	for i := range rows {
		if err := into[i].decode(&rows[i]); err != nil {
			return fmt.Errorf("run %s: %w", short(rows[i].id), err)
		}
	}
	return nil
}

func (d *decoded) decode(row *stored) error {
	var b record.RunBody
	if err := decode(row.body, &b); err != nil {
		return err
	}
	d.run = record.StoredRun{Run: b.Run, ExperimentID: b.ExperimentID, Attempt: b.Attempt}
	if b.Slot != nil {
		d.run.Slot = *b.Slot
	}
	d.shares = shares{b.Machine, b.Build, b.Model, b.ModelName, b.Config, b.Plan}
	r := &d.run.Run
	r.RunID, r.Stats = row.id, b.Stats.Counters
	if err := decode(row.before, &r.EnvBefore); err != nil {
		return err
	}
	if err := decode(row.after, &r.EnvAfter); err != nil {
		return err
	}
	if len(row.expected) > 0 {
		r.Prediction = &record.Prediction{}
		if err := decode(row.expected, r.Prediction); err != nil {
			return err
		}
	}
	if len(row.personal) > 0 {
		if err := decode(row.personal, &d.private); err != nil {
			return err
		}
	}
	return unpack(row, r)
}

func unpack(row *stored, r *record.Run) error {
	cols, err := record.UnpackSamples(row.samples)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	r.TokenNS, r.TokenWaitNS, r.TokenManageNS = cols.NS, cols.WaitNS, cols.ManageNS
	if r.Tokens, err = record.UnpackTokens(row.tokens); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// fill adds what the run shares with others, and then what is private.
func (l *loader) fill(ctx context.Context, d *decoded) (err error) {
	r, of := &d.run.Run, &d.shares
	if r.Machine, err = fetch(ctx, l, l.machines, "machine", of.machine); err != nil {
		return err
	}
	if r.Build, err = fetch(ctx, l, l.builds, "build", of.build); err != nil {
		return err
	}
	if r.Model, err = fetch(ctx, l, l.models, "model", of.model); err != nil {
		return err
	}
	if r.Config, err = fetch(ctx, l, l.configs, "config", of.config); err != nil {
		return err
	}
	r.Machine.ID, r.Build.ID, r.Model.ID, r.Model.Name = of.machine, of.build, of.model, of.modelName
	if of.plan != "" {
		if r.Plan, err = fetch(ctx, l, l.plans, "plan", of.plan); err != nil {
			return err
		}
	}
	if d.private.Empty() {
		return nil
	}
	if r.Plan != nil { // others have the same
		plan := *r.Plan
		plan.Decisions = slices.Clone(plan.Decisions)
		r.Plan = &plan
	}
	d.private.RestoreRun(r)
	return nil
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
