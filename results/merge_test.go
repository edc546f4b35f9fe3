package results

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/bmoe/bmoe/results/record"
)

// ledger writes a ledger file with fn and returns its path, closed.
func ledger(t testing.TB, dir, name string, fn func(s *Store)) string {
	t.Helper()
	path := filepath.Join(dir, name)
	s, err := Open(context.Background(), path, Options{})
	must(t, err)
	if fn != nil {
		fn(s)
	}
	must(t, s.Close())
	return path
}

func digest(t testing.TB, path string) string {
	t.Helper()
	s, err := Open(context.Background(), path, Options{ReadOnly: true})
	must(t, err)
	defer s.Close()
	d, err := s.Digest(context.Background())
	must(t, err)
	return d
}

func TestMerge(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	a := ledger(t, dir, "a.db", func(s *Store) { fill(t, s, 1) })
	b := ledger(t, dir, "b.db", func(s *Store) {
		fill(t, s, 2)
		must(t, second(s.SaveRun(ctx, testRun(1, 100, 5), "", record.Slot{}, 0)))
	})
	before := digest(t, b)
	s, err := Open(ctx, a, Options{})
	must(t, err)
	defer s.Close()
	rep, err := s.Merge(ctx, []string{b})
	must(t, err)
	if rep.Tables["run"] != (TableCount{5, 1}) || rep.Tables["samples"] != (TableCount{5, 1}) || len(rep.Conflicts) != 0 {
		t.Errorf("merge: %+v", rep)
	}
	again, err := s.Merge(ctx, []string{b})
	must(t, err)
	if again.Inserted != 0 || again.Present != rep.Inserted+rep.Present {
		t.Errorf("merging again: %+v after %+v", again, rep)
	}
	runs, err := s.Runs(ctx, RunFilter{Machine: testMachine(2).ID, Samples: true, Text: true})
	must(t, err)
	if len(runs) != 5 || runs[0].Run.Text == "" || len(runs[0].Run.TokenNS) != 20 {
		t.Errorf("merged runs: %+v", runs)
	}
	if digest(t, b) != before {
		t.Error("the source changed")
	}
	check, err := s.Check(ctx, Recompute{})
	must(t, err)
	if len(check.Problems) > 0 {
		t.Errorf("check: %v", check.Problems)
	}
}

func TestMergeOfManyFilesIsOneTransaction(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	var paths []string
	for i := range 11 {
		paths = append(paths, ledger(t, dir, fmt.Sprintf("m%d.db", i), func(s *Store) {
			must(t, second(s.SaveRun(ctx, testRun(i%5, 0, 5), "", record.Slot{}, 0)))
		}))
	}
	s := openTest(t, "all.db")
	rep, err := s.Merge(ctx, paths)
	must(t, err)
	if rep.Tables["run"].Inserted != 5 || rep.Inserted+rep.Present != 11*12 {
		t.Errorf("merge: %+v", rep)
	}
	bad := filepath.Join(dir, "bad.db")
	must(t, os.WriteFile(bad, []byte("not a database at all, but long enough to have been one"), 0o600))
	empty := openTest(t, "none.db")
	if _, err := empty.Merge(ctx, append(paths, bad)); !errors.Is(err, ErrNotDatabase) {
		t.Errorf("a bad file among many: %v", err)
	}
	if runs, _ := empty.Runs(ctx, RunFilter{}); len(runs) != 0 {
		t.Errorf("%d runs of a merge that failed", len(runs))
	}
}

// forge changes rows behind the ledger's back.
func forge(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := connect(path, "mode=rw")
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range append([]string{"PRAGMA foreign_keys = OFF", "DROP TRIGGER run_no_update", "DROP TRIGGER experiment_no_update"}, statements...) {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

func TestMergeConflictUndoesAll(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	a := ledger(t, dir, "a.db", func(s *Store) { fill(t, s, 1) })
	b := ledger(t, dir, "b.db", func(s *Store) { fill(t, s, 1); fill(t, s, 2) })
	forge(t, b, `UPDATE model SET body = json_set(body, '$.layers', 17)`)
	before := digest(t, a)
	s, err := Open(ctx, a, Options{})
	must(t, err)
	defer s.Close()
	rep, err := s.Merge(ctx, []string{b})
	if !errors.Is(err, ErrConflict) || !IsDataFault(err) {
		t.Fatalf("conflict: %v", err)
	}
	if len(rep.Conflicts) != 1 || rep.Conflicts[0].Table != "model" || rep.Conflicts[0].ID != testModel(0).ID || rep.Inserted != 0 {
		t.Errorf("report: %+v", rep)
	}
	if digest(t, a) != before {
		t.Error("a merge with a conflict changed the ledger")
	}
}

func TestMergeRefusesForgeries(t *testing.T) {
	ctx := context.Background()
	for name, statements := range map[string][]string{
		"body under another's id": {`UPDATE run SET body = json_set(body, '$.measured.decode_s_per_token', 0.001)`},
		"id that is a path":       {`UPDATE model SET id = '../../etc/passwd'`},
		"samples of another run":  {`UPDATE samples SET data = (SELECT data FROM samples ORDER BY data DESC LIMIT 1)`},
		"samples cut short":       {`UPDATE samples SET data = substr(data, 1, 9)`},
		"missing parent":          {`DELETE FROM config`},
		"event about nothing":     {`INSERT INTO event (id, body) VALUES ('ab', '{}') ON CONFLICT DO NOTHING`},
		"private of nobody":       {`UPDATE private SET owner_id = 'nobody-here' WHERE rowid = 1`},
		"view in place of table":  {`ALTER TABLE fit RENAME TO fit2`, `CREATE VIEW fit AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, '' AS body FROM n`},
		"other columns":           {`ALTER TABLE build ADD COLUMN more TEXT`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := ledger(t, dir, "b.db", func(s *Store) { fill(t, s, 2) })
			if name == "event about nothing" {
				body := `{"at":"2026-01-01T00:00:00Z","id":"","kind":"void","subject":"0123456789","why":"x"}`
				statements = []string{fmt.Sprintf(`INSERT INTO event (id, body) VALUES ('%s', '%s')`, record.HashID([]byte(body)), body)}
			}
			forge(t, b, statements...)
			s := openTest(t, "a.db")
			before := digest(t, s.path)
			rep, err := s.Merge(ctx, []string{b})
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%+v, %v", rep, err)
			}
			if digest(t, s.path) != before {
				t.Error("something was merged")
			}
		})
	}
}
