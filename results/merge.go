package results

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"
)

// MergeReport says what a merge did, or would have done had there been no
// conflicts. Counts are rows.
type MergeReport struct {
	Inserted  int                   `json:"inserted"`
	Present   int                   `json:"present"` // there already, identical
	Conflicts []Conflict            `json:"conflicts"`
	Tables    map[string]TableCount `json:"tables"`
}

// TableCount is a merge's effect on one table.
type TableCount struct {
	Inserted int `json:"inserted"`
	Present  int `json:"present"`
}

// Conflict is a row whose id both sides have, with other content.
type Conflict struct {
	Table  string `json:"table"`
	ID     string `json:"id"`
	Source string `json:"source"`
}

// maxConflicts bounds the list of one table and source.
const maxConflicts = 1000

// atOnce is how many sources are attached to one connection; SQLite allows ten.
const atOnce = 8

// Merge copies into s what the ledgers at paths have and s has not, in one
// transaction: all of it, or nothing. Merging again changes nothing, and the
// order of merges does not matter. A conflict (an id on both sides with other
// content) undoes the merge and is listed; a source that is not a sound ledger
// is refused. Sources are never written to; one with an older schema is read
// through a migrated copy.
func (s *Store) Merge(ctx context.Context, paths []string) (MergeReport, error) {
	tmp, err := os.MkdirTemp("", "bmoe-merge-")
	if err != nil {
		return MergeReport{}, err
	}
	defer os.RemoveAll(tmp)
	sources, err := s.prepareSources(ctx, paths, tmp)
	if err != nil {
		return MergeReport{}, err
	}
	defer closeSources(sources)
	if len(sources) <= atOnce {
		return s.merge(ctx, sources, paths)
	}
	return s.mergeStaged(ctx, sources, paths, tmp)
}

// mergeStaged merges more sources than can be attached: first into a ledger of
// their own, then from there, so that it is still all or nothing.
func (s *Store) mergeStaged(ctx context.Context, sources []source, paths []string, tmp string) (MergeReport, error) {
	stage, err := Open(ctx, tmp+"/stage.db", Options{fsType: func(string) string { return "" }})
	if err != nil {
		return MergeReport{}, err
	}
	defer stage.Close()
	repeated := 0
	for len(sources) > 0 {
		n := min(atOnce, len(sources))
		rep, err := stage.merge(ctx, sources[:n], paths[:n])
		if err != nil {
			return rep, err
		}
		repeated += rep.Present
		sources, paths = sources[n:], paths[n:]
	}
	rep, err := s.merge(ctx, []source{{name: "the files given, together", dsn: dsn(stage.path, "mode=ro")}}, []string{"several files"})
	rep.Present += repeated
	return rep, err
}

func (s *Store) merge(ctx context.Context, sources []source, log []string) (MergeReport, error) {
	rep := MergeReport{Tables: map[string]TableCount{}, Conflicts: []Conflict{}}
	if s.writer == nil {
		return rep, &Fault{Path: s.path, Kind: ErrReadOnly, Hint: "merge into a database that can be written"}
	}
	conn, err := s.writer.Conn(ctx) // ATTACH belongs to one connection
	if err != nil {
		return rep, s.fault(err)
	}
	defer conn.Close()
	for i := range sources {
		if err := attach(ctx, conn, &sources[i], i); err != nil {
			return rep, err
		}
		defer detach(ctx, conn, sources[i].schema)
	}
	tx, err := beginRetry(ctx, conn)
	if err != nil {
		return rep, s.fault(err)
	}
	defer tx.Rollback()
	for i := range sources {
		if err := mergeOne(ctx, tx, &sources[i], &rep); err != nil {
			return rep, err
		}
		if err := logImport(ctx, tx, "merge", log[i], rep.Inserted, rep.Present); err != nil {
			return rep, s.fault(err)
		}
	}
	if n := len(rep.Conflicts); n > 0 {
		rep.Inserted, rep.Tables = 0, map[string]TableCount{}
		c := rep.Conflicts[0]
		return rep, &Fault{
			Path: s.path, Kind: ErrConflict, Detail: fmt.Sprintf("%d rows, the first is %s %s of %s", n, c.Table, short(c.ID), c.Source),
			Hint: "nothing was merged; `bmoe db check` on each file tells which of them is wrong",
		}
	}
	return rep, s.fault(tx.Commit())
}

func beginRetry(ctx context.Context, conn *sql.Conn) (tx *sql.Tx, err error) {
	err = retryBusy(ctx, func() error {
		tx, err = conn.BeginTx(ctx, nil)
		return err
	})
	return tx, err
}

// mergeOne copies the tables of one attached source, parents first.
func mergeOne(ctx context.Context, tx *sql.Tx, src *source, rep *MergeReport) error {
	for _, e := range entities {
		if src.public && e.private {
			continue
		}
		conflicts, err := column(ctx, tx, fmt.Sprintf(
			`SELECT s.%[2]s FROM %[3]s.%[1]s s JOIN main.%[1]s m ON m.%[2]s = s.%[2]s WHERE s.%[4]s IS NOT m.%[4]s ORDER BY 1 LIMIT %[5]d`,
			e.table, e.key, src.schema, e.content, maxConflicts))
		if err != nil {
			return faultOf(src.path, err)
		}
		for _, id := range conflicts {
			rep.Conflicts = append(rep.Conflicts, Conflict{e.table, id, src.name})
		}
		if err := judgeNew(ctx, tx, e, src); err != nil {
			return err
		}
		if err := copyTable(ctx, tx, e, src, rep, len(conflicts)); err != nil {
			return err
		}
	}
	return judgeLinks(ctx, tx, src)
}

func copyTable(ctx context.Context, tx *sql.Tx, e entity, src *source, rep *MergeReport, conflicts int) error {
	cols := e.key + ", " + e.content
	if e.extra != "" {
		cols += ", " + e.extra
	}
	var all int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM "+src.schema+"."+e.table).Scan(&all); err != nil {
		return faultOf(src.path, err)
	}
	res, err := tx.ExecContext(ctx, fmt.Sprintf(
		`INSERT INTO main.%[1]s (%[2]s) SELECT %[2]s FROM %[3]s.%[1]s s WHERE NOT EXISTS (SELECT 1 FROM main.%[1]s m WHERE m.%[4]s = s.%[4]s)`,
		e.table, cols, src.schema, e.key))
	if err != nil {
		if isConstraint(err) {
			return src.corrupt(e.table + ": " + err.Error())
		}
		return fmt.Errorf("merging %s of %s: %w", e.table, src.name, faultOf("the database", err))
	}
	n, err := res.RowsAffected()
	if err != nil {
		return err
	}
	count := rep.Tables[e.table]
	count.Inserted += int(n)
	count.Present += all - int(n) - conflicts
	rep.Tables[e.table] = count
	rep.Inserted += int(n)
	rep.Present += all - int(n) - conflicts
	return nil
}

func logImport(ctx context.Context, tx *sql.Tx, kind, source string, inserted, present int) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO import_log (at, kind, source, inserted, present, detail) VALUES (?, ?, ?, ?, ?, '')",
		time.Now().UTC().Format(time.RFC3339), kind, source, inserted, present)
	return err
}

// column returns the first column of a query.
func column(ctx context.Context, q queryer, query string, args ...any) ([]string, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}
