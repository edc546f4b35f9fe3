package results

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"

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
	lean     bool
	limit    int
	machines map[string]record.Machine
	builds   map[string]record.Build
	models   map[string]record.Model
	configs  map[string]config.Config
	plans    map[string]*planner.Plan
}

func newLoader(s *Store, f RunFilter) *loader {
	return &loader{
		s: s, samples: f.Samples, text: f.Text, lean: f.Lean, limit: f.Limit,
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
	before, after, surroundings := "b.body", "a.body", "JOIN environment b ON b.id = r.env_before_id JOIN environment a ON a.id = r.env_after_id"
	if l.lean {
		before, after, surroundings = "NULL", "NULL", ""
	}
	return `SELECT r.id, r.body, ` + before + `, ` + after + `, p.body, ` + samples + `, ` + tokens + `, ` + private + `
		FROM run r ` + surroundings + `
		LEFT JOIN prediction p ON p.id = r.prediction_id
		WHERE ` + cond + ` ` + order
}

// stored is a run's row with the rows that belong to it alone.
type stored struct {
	id                                                       string
	body, before, after, expected, samples, tokens, personal []byte
}

// rest is what a run's row says of what it shares with others, and what is
// private in it.
type rest struct {
	shares  shares
	private record.Private
}

// shares are the ids of what a run shares with others.
type shares struct{ machine, build, model, modelName, config, plan string }

// chunk is how many rows are decoded together, beside the reading of the next.
const chunk = 256

// batch is a chunk of rows and the memory they point into. It is used again:
// a ledger of five million samples is some hundred megabytes, and fresh memory
// costs more than reading does.
type batch struct {
	rows []stored
	held []byte
}

var batches = sync.Pool{New: func() any { return &batch{rows: make([]stored, 0, chunk)} }}

func (b *batch) add(r *sql.Rows) error {
	var row stored
	var raw [7]sql.RawBytes // the driver's memory, good until the next row
	if err := r.Scan(&row.id, &raw[0], &raw[1], &raw[2], &raw[3], &raw[4], &raw[5], &raw[6]); err != nil {
		return err
	}
	for i, into := range []*[]byte{&row.body, &row.before, &row.after, &row.expected, &row.samples, &row.tokens, &row.personal} {
		at := len(b.held)
		b.held = append(b.held, raw[i]...)
		*into = b.held[at:len(b.held):len(b.held)]
	}
	b.rows = append(b.rows, row)
	return nil
}

// load reads runs and decodes them on all processors, in the order of rows.
func (l *loader) load(ctx context.Context, cond, order string, args []any) ([]record.StoredRun, error) {
	var n int
	if err := l.s.reader.QueryRowContext(ctx, "SELECT count(*) FROM run r WHERE "+cond, args...).Scan(&n); err != nil {
		return nil, l.s.fault(err)
	}
	if l.limit > 0 {
		n = min(n, l.limit)
	}
	out, rests := make([]record.StoredRun, n), make([]rest, n)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	b, done := batches.Get().(*batch), 0
	flush := func() {
		full, at := b, done
		done += len(full.rows)
		b = batches.Get().(*batch)
		group.Go(func() error {
			defer full.free()
			return full.decode(out[at:], rests[at:])
		})
	}
	err := l.s.each(ctx, l.query(cond, order), args, func(r *sql.Rows) error {
		if done+len(b.rows) == n { // stored since they were counted
			return nil
		}
		if err := b.add(r); err != nil || len(b.rows) < chunk {
			return err
		}
		flush()
		return nil
	})
	flush()
	b.free()
	if werr := group.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		return nil, err
	}
	out = out[:done]
	for i := range out {
		if err := l.fill(ctx, &out[i].Run, &rests[i]); err != nil {
			return nil, fmt.Errorf("run %s: %w", short(out[i].Run.RunID), err)
		}
	}
	return out, l.voids(ctx, out)
}

func (b *batch) free() {
	b.rows, b.held = b.rows[:0], b.held[:0]
	batches.Put(b)
}

// decode decodes a batch's rows; nothing that is decoded points into it.
func (b *batch) decode(out []record.StoredRun, rests []rest) error {
	body := new(record.RunBody) // large, and made anew by every decoding otherwise
	for i := range b.rows {
		*body = record.RunBody{}
		if err := b.rows[i].decode(body, &out[i], &rests[i]); err != nil {
			return fmt.Errorf("run %s: %w", short(b.rows[i].id), err)
		}
	}
	return nil
}

func (row *stored) decode(b *record.RunBody, out *record.StoredRun, other *rest) error {
	if err := decode(row.body, b); err != nil {
		return err
	}
	out.Run, out.ExperimentID, out.Attempt = b.Run, b.ExperimentID, b.Attempt
	if b.Slot != nil {
		out.Slot = *b.Slot
	}
	other.shares = shares{b.Machine, b.Build, b.Model, b.ModelName, b.Config, b.Plan}
	r := &out.Run
	r.RunID, r.Stats = row.id, b.Stats.Counters
	if len(row.expected) > 0 {
		r.Prediction = &record.Prediction{}
	}
	for _, part := range []struct {
		body []byte
		into any
	}{{row.before, &r.EnvBefore}, {row.after, &r.EnvAfter}, {row.expected, r.Prediction}, {row.personal, &other.private}} {
		if len(part.body) == 0 { // not asked for, or there is none
			continue
		}
		if err := decode(part.body, part.into); err != nil {
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
func (l *loader) fill(ctx context.Context, r *record.Run, other *rest) (err error) {
	of := &other.shares
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
	if other.private.Empty() {
		return nil
	}
	if r.Plan != nil { // others have the same
		plan := *r.Plan
		plan.Decisions = slices.Clone(plan.Decisions)
		r.Plan = &plan
	}
	other.private.RestoreRun(r)
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
