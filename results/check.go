package results

import (
	"context"
	"database/sql"
	"fmt"
	"sort"

	"github.com/bmoe/bmoe/results/record"
)

// Recompute gives Check the methods that derived rows are recomputed by. ok is
// false for a method the program does not know (any more).
type Recompute struct {
	Verdict func(method string, e record.Experiment, runs []record.StoredRun) (v record.Verdict, ok bool)
	Fit     func(ctx context.Context, s *Store, f record.Fit) (again record.Fit, ok bool, err error)
}

// CheckReport is what Check found.
type CheckReport struct {
	Rows     map[string]int `json:"rows"` // by table
	Problems []Problem      `json:"problems"`
	// Derived rows: recomputed to the same, by a method not known here, or
	// computed before later runs came in.
	Recomputed int      `json:"recomputed"`
	Unknown    int      `json:"unknown_method"`
	Stale      int      `json:"stale"`
	Notes      []string `json:"notes,omitempty"`
}

// Problem is something in a ledger that is not as it should be.
type Problem struct {
	Table string `json:"table,omitempty"`
	ID    string `json:"id,omitempty"`
	What  string `json:"what"`
}

func (p Problem) String() string {
	if p.Table == "" {
		return p.What
	}
	return p.Table + " " + short(p.ID) + ": " + p.What
}

// maxProblems bounds the list: a file that is wrong throughout is said to be.
const maxProblems = 1000

// Check reads everything and says what is wrong: pages, foreign keys, ids that
// are not the hash of their content, bodies that do not decode, blobs that are
// not those of their run, and derived rows that do not recompute. It changes
// nothing.
func (s *Store) Check(ctx context.Context, re Recompute) (CheckReport, error) {
	rep := CheckReport{Rows: map[string]int{}, Problems: []Problem{}}
	conn, err := s.reader.Conn(ctx)
	if err != nil {
		return rep, s.fault(err)
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one state throughout
	if err != nil {
		return rep, s.fault(err)
	}
	defer tx.Rollback()
	for _, step := range []func(context.Context, *sql.Tx, *CheckReport) error{checkPages, checkRows, checkLinks, checkPredictions} {
		if err := step(ctx, tx, &rep); err != nil {
			return rep, s.fault(err)
		}
	}
	if len(rep.Problems) > 0 {
		return rep, nil // what is derived from unsound rows says nothing
	}
	if err := s.checkVerdicts(ctx, re, &rep); err != nil {
		return rep, err
	}
	return rep, s.checkFits(ctx, re, &rep)
}

func (rep *CheckReport) add(p Problem) {
	if len(rep.Problems) < maxProblems {
		rep.Problems = append(rep.Problems, p)
	}
}

func checkPages(ctx context.Context, tx *sql.Tx, rep *CheckReport) error {
	pages, err := column(ctx, tx, "PRAGMA integrity_check(20)")
	if err != nil {
		return err
	}
	for _, line := range pages {
		if line != "ok" {
			rep.add(Problem{What: line})
		}
	}
	keys, err := column(ctx, tx, `SELECT "table" || ' row ' || rowid || ' refers to a missing ' || parent FROM pragma_foreign_key_check LIMIT 20`)
	for _, line := range keys {
		rep.add(Problem{What: line})
	}
	return err
}

func checkRows(ctx context.Context, tx *sql.Tx, rep *CheckReport) error {
	for _, e := range entities {
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM "+e.table).Scan(&n); err != nil {
			return err
		}
		rep.Rows[e.table] = n
		blob := "''"
		if e.extra == "data" {
			blob = "bmoe_blob_fault('" + e.table + "', body, data)"
		}
		err := eachPair(ctx, tx, fmt.Sprintf("SELECT %[2]s, f FROM (SELECT %[2]s, bmoe_fault('%[1]s', %[2]s, %[3]s) || %[4]s AS f FROM %[1]s) WHERE f <> '' LIMIT %[5]d",
			e.table, e.key, e.content, blob, maxProblems), func(id, what string) { rep.add(Problem{e.table, id, what}) })
		if err != nil {
			return err
		}
	}
	return nil
}

func checkLinks(ctx context.Context, tx *sql.Tx, rep *CheckReport) error {
	for _, l := range links {
		ids, err := column(ctx, tx, fmt.Sprintf(l.query, "main")+fmt.Sprintf(" LIMIT %d", maxProblems))
		if err != nil {
			return err
		}
		for _, id := range ids {
			rep.add(Problem{What: l.what + ": " + short(id)})
		}
	}
	return nil
}

// checkPredictions notes predictions that were written down after their run
// began: such a run cannot confirm them. That is no fault of the file.
func checkPredictions(ctx context.Context, tx *sql.Tx, rep *CheckReport) error {
	return eachPair(ctx, tx, `SELECT r.id, p.made_at FROM run r JOIN prediction p ON p.id = r.prediction_id WHERE p.made_at > r.started_at LIMIT 20`,
		func(id, at string) {
			rep.Notes = append(rep.Notes, fmt.Sprintf("run %s began before its prediction was written down (%s)", short(id), at))
		})
}

func eachPair(ctx context.Context, q queryer, query string, fn func(a, b string)) error {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var a, b string
		if err := rows.Scan(&a, &b); err != nil {
			return err
		}
		fn(a, b)
	}
	return rows.Err()
}

// checkVerdicts recomputes the verdicts that still stand. One whose runs have
// changed since is stale: a report recomputes it.
func (s *Store) checkVerdicts(ctx context.Context, re Recompute, rep *CheckReport) error {
	all, err := s.allVerdicts(ctx, "")
	if err != nil {
		return err
	}
	standing, err := s.Verdicts(ctx, "")
	if err != nil {
		return err
	}
	rep.Stale = len(all) - len(standing)
	for _, v := range standing {
		again, ok, err := s.again(ctx, re, v)
		if err != nil {
			return err
		}
		if !ok {
			rep.Unknown++
			continue
		}
		if again.ContentID() != v.ID {
			rep.add(Problem{"verdict", v.ID, "does not recompute from its runs by " + v.Method})
			continue
		}
		rep.Recomputed++
	}
	return nil
}

func (s *Store) again(ctx context.Context, re Recompute, v record.Verdict) (record.Verdict, bool, error) {
	if re.Verdict == nil {
		return v, false, nil
	}
	e, err := s.Experiment(ctx, v.ExperimentID)
	if err != nil {
		return v, false, err
	}
	runs, err := Conductor{s}.Runs(ctx, v.ExperimentID)
	if err != nil {
		return v, false, err
	}
	again, ok := re.Verdict(v.Method, e, runs)
	again.ID, again.Inputs = "", v.Inputs
	return again, ok, nil
}

func (s *Store) checkFits(ctx context.Context, re Recompute, rep *CheckReport) error {
	fits, err := s.Fits(ctx, "")
	if err != nil {
		return err
	}
	for _, f := range fits {
		if re.Fit == nil {
			rep.Unknown++
			continue
		}
		again, ok, err := re.Fit(ctx, s, f)
		switch {
		case err != nil:
			return err
		case !ok:
			rep.Unknown++
		case again.ContentID() != f.ID:
			rep.add(Problem{"fit", f.ID, "does not recompute from its inputs by " + f.Method})
		default:
			rep.Recomputed++
		}
	}
	return nil
}

// Digest is a hash over everything in the ledger that others may have too: two
// ledgers with the same digest hold the same, whatever the order it came in.
func (s *Store) Digest(ctx context.Context) (string, error) {
	var sums []string
	for _, e := range entities {
		err := eachPair(ctx, s.reader, fmt.Sprintf("SELECT %s, bmoe_sha(%s) FROM %s", e.key, e.content, e.table),
			func(key, sum string) { sums = append(sums, e.table+" "+key+" "+sum) })
		if err != nil {
			return "", s.fault(err)
		}
	}
	sort.Strings(sums)
	return record.ID(sums), nil
}
