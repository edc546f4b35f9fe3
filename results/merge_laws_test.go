package results

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/results/record"
)

// deed is one thing done to a ledger; the same deed done to two ledgers leaves
// the same rows in both.
type deed struct {
	kind    string
	machine int
	n       int
}

var deedKinds = []string{"run", "run", "run", "experiment", "plan", "void", "histogram", "trace", "fit", "facts"}

func drawDeeds(rt *rapid.T, name string, kinds []string) []deed {
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) deed {
		return deed{rapid.SampledFrom(kinds).Draw(rt, "kind"), rapid.IntRange(1, 3).Draw(rt, "machine"), rapid.IntRange(0, 3).Draw(rt, "n")}
	}), 0, 8).Draw(rt, name)
}

// do does a deed. What it needs (the run that is void, say) is done with it.
func (d deed) do(s *Store) error {
	ctx := context.Background()
	run := testRun(d.machine, d.n, 3*d.n)
	switch d.kind {
	case "run":
		return second(s.SaveRun(ctx, run, "", record.Slot{}, 0))
	case "experiment", "verdict":
		e := testExperiment(d.machine, d.n)
		if _, err := s.SaveExperiment(ctx, e); err != nil {
			return err
		}
		if _, err := s.SaveRun(ctx, run, e.ID, e.Schedule[d.n], 1); err != nil || d.kind == "experiment" {
			return err
		}
		return second(s.SaveVerdict(ctx, record.Verdict{ExperimentID: e.ID, Method: "m/1"}))
	case "plan":
		_, _, err := s.RegisterPlan(ctx, run.Machine, run.Build, run.Model, *run.Plan, epoch.Add(time.Duration(d.n)*time.Second))
		return err
	case "void":
		id, err := s.SaveRun(ctx, run, "", record.Slot{}, 0)
		if err != nil {
			return err
		}
		return s.AddEvent(ctx, record.Event{Kind: record.EventVoid, Subject: id, Why: "noise", At: epoch})
	}
	if err := second(s.SaveFacts(ctx, run.Machine, run.Model, epoch.Add(time.Duration(d.n)*time.Second), nil)); err != nil || d.kind == "facts" {
		return err
	}
	switch d.kind {
	case "histogram":
		return second(s.SaveHistogram(ctx, record.Histogram{ModelID: run.Model.ID, Policy: "lru", Lookups: int64(d.n), Bins: []record.HistogramBin{{Bytes: 1, Count: int64(d.n)}}}))
	case "trace":
		return second(s.SaveTrace(ctx, record.Trace{ModelID: run.Model.ID, At: epoch, CSV: []byte(fmt.Sprint(d.n))}))
	}
	return second(s.SaveFit(ctx, record.Fit{Method: "f/1", ModelID: run.Model.ID, Points: d.n, Inputs: []string{}}))
}

// workshop makes ledgers quickly, from a copy of an empty one.
type workshop struct {
	dir   string
	empty []byte
	n     int
}

func newWorkshop(t testing.TB) *workshop {
	raw, err := os.ReadFile(ledger(t, t.TempDir(), "empty.db", nil))
	must(t, err)
	return &workshop{dir: t.TempDir(), empty: raw}
}

// open opens a new ledger, or one that begins as the file at path.
func (w *workshop) open(rt fataler, path string) *Store {
	raw := w.empty
	if path != "" {
		var err error
		if raw, err = os.ReadFile(path); err != nil {
			rt.Fatalf("%v", err)
		}
	}
	w.n++
	name := filepath.Join(w.dir, fmt.Sprintf("%d.db", w.n))
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		rt.Fatalf("%v", err)
	}
	s, err := Open(context.Background(), name, Options{noSync: true})
	if err != nil {
		rt.Fatalf("%v", err)
	}
	return s
}

type fataler interface{ Fatalf(string, ...any) }

// make makes a closed ledger in which the deeds were done.
func (w *workshop) make(rt fataler, deeds []deed) string {
	s := w.open(rt, "")
	defer s.Close()
	for _, d := range deeds {
		if err := d.do(s); err != nil {
			rt.Fatalf("%+v: %v", d, err)
		}
	}
	return s.path
}

// merged is a new ledger: the first file with the others merged into it.
func (w *workshop) merged(rt fataler, paths ...string) (string, string) {
	s := w.open(rt, paths[0])
	defer s.Close()
	for _, p := range paths[1:] {
		rows, err := countRows(p)
		if err != nil {
			rt.Fatalf("%v", err)
		}
		rep, err := s.Merge(context.Background(), []string{p})
		if err != nil || rep.Inserted+rep.Present != rows || len(rep.Conflicts) > 0 {
			rt.Fatalf("merge of %d rows: %+v, %v", rows, rep, err)
		}
	}
	d, err := s.Digest(context.Background())
	if err != nil {
		rt.Fatalf("%v", err)
	}
	return s.path, d
}

func countRows(path string) (n int, err error) {
	s, err := Open(context.Background(), path, Options{ReadOnly: true})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for _, e := range entities {
		var rows int
		if err := s.reader.QueryRow("SELECT count(*) FROM " + e.table).Scan(&rows); err != nil {
			return 0, err
		}
		n += rows
	}
	return n, nil
}

func TestMergeLaws(t *testing.T) {
	w := newWorkshop(t)
	kinds := append([]string{"verdict"}, deedKinds...)
	rapid.Check(t, func(rt *rapid.T) {
		a, b, c := w.make(rt, drawDeeds(rt, "a", kinds)), w.make(rt, drawDeeds(rt, "b", kinds)), w.make(rt, drawDeeds(rt, "c", kinds))
		_, alone := w.merged(rt, a)
		if _, again := w.merged(rt, a, w.copyOf(rt, a)); again != alone {
			rt.Fatalf("a ledger merged into itself is another")
		}
		ab, dab := w.merged(rt, a, b)
		if _, dba := w.merged(rt, b, a); dab != dba {
			rt.Fatalf("a with b is not b with a")
		}
		bc, _ := w.merged(rt, b, c)
		_, left := w.merged(rt, ab, c)
		if _, right := w.merged(rt, a, bc); left != right {
			rt.Fatalf("(a with b) with c is not a with (b with c)")
		}
		all := w.open(rt, "")
		defer all.Close()
		if _, err := all.Merge(context.Background(), []string{c, a, b}); err != nil {
			rt.Fatalf("%v", err)
		}
		if together, _ := all.Digest(context.Background()); together != left {
			rt.Fatalf("three at once are not one after the other")
		}
	})
}

func (w *workshop) copyOf(rt fataler, path string) string {
	s := w.open(rt, path)
	defer s.Close()
	return s.path
}

// A merged ledger is what one would be in which everything had been done.
func TestMergeIsDoingBoth(t *testing.T) {
	w := newWorkshop(t)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := drawDeeds(rt, "a", deedKinds), drawDeeds(rt, "b", deedKinds)
		path, merged := w.merged(rt, w.make(rt, a), w.make(rt, b))
		_, both := w.merged(rt, w.make(rt, append(b, a...)))
		if merged != both {
			rt.Fatalf("merging is not doing both")
		}
		s, err := Open(context.Background(), path, Options{ReadOnly: true})
		if err != nil {
			rt.Fatalf("%v", err)
		}
		defer s.Close()
		if rep, err := s.Check(context.Background(), Recompute{}); err != nil || len(rep.Problems) > 0 {
			rt.Fatalf("check: %v, %v", rep.Problems, err)
		}
	})
}

// FuzzMerge damages a ledger and merges it: the merge may fail and then has
// done nothing, or it may not, and then what it did is sound.
func FuzzMerge(f *testing.F) {
	w := newWorkshop(f)
	source := w.make(f, []deed{{"experiment", 1, 1}, {"verdict", 2, 2}, {"void", 1, 2}, {"histogram", 1, 3}, {"trace", 1, 1}, {"plan", 3, 1}})
	good, err := os.ReadFile(source)
	must(f, err)
	f.Add(uint32(0), []byte(nil), false)
	for at := uint32(20); int(at) < len(good); at = at*3/2 + 37 {
		f.Add(at, []byte{0xff, 0, 0x41}, false)
	}
	f.Add(uint32(9000), []byte{}, true)
	f.Add(uint32(bytes.Index(good, []byte(`"attempt":1`))), []byte(`"attempt":2`), false)
	f.Add(uint32(bytes.Index(good, []byte(`"why":"noise"`))), []byte(`"why":"NOISE"`), false)
	f.Fuzz(func(t *testing.T, at uint32, noise []byte, cut bool) {
		raw := bytes.Clone(good)
		at %= uint32(len(raw))
		copy(raw[at:], noise)
		if cut {
			raw = raw[:at]
		}
		bad := filepath.Join(t.TempDir(), "bad.db")
		must(t, os.WriteFile(bad, raw, 0o600))
		s := w.open(t, "")
		defer os.Remove(s.path)
		defer s.Close()
		before, err := s.Digest(context.Background())
		must(t, err)
		_, err = s.Merge(context.Background(), []string{bad})
		after, derr := s.Digest(context.Background())
		must(t, derr)
		if err != nil && after != before {
			t.Errorf("a merge that failed (%v) changed the ledger", err)
		}
		if rep, cerr := s.Check(context.Background(), Recompute{}); cerr != nil || len(rep.Problems) > 0 {
			t.Errorf("after the merge (%v): %v, %v", err, rep.Problems, cerr)
		}
		if _, err := s.Runs(context.Background(), RunFilter{Samples: true, Text: true, IncludeVoid: true}); err != nil {
			t.Errorf("runs after the merge: %v", err)
		}
	})
}
