package results

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	sqlite "github.com/mattn/go-sqlite3"
)

// source is a ledger to merge from.
type source struct {
	name   string // as the caller gave it
	path   string
	dsn    string
	schema string // name it is attached under
	public bool   // leave out what is private
	held   *Store // keeps its log from being left behind; nil of a copy
}

func (src *source) corrupt(what string) error {
	return &Fault{Path: src.path, Kind: ErrCorrupt, Detail: what, Hint: "nothing was merged; ask for another copy, or run `bmoe db check --db " + src.name + "`"}
}

// prepareSources refuses what is not a sound ledger before anything is done,
// and finds out how each source can be read.
func (s *Store) prepareSources(ctx context.Context, names []string, tmp string) ([]source, error) {
	paths := make([]string, len(names))
	for i, name := range names {
		var err error
		if paths[i], err = s.sourceFile(name); err != nil {
			return nil, err
		}
	}
	var sources []source
	for i, path := range paths {
		src, err := openSource(ctx, path, filepath.Join(tmp, fmt.Sprint(i)))
		if err != nil {
			closeSources(sources)
			return nil, err
		}
		src.name = names[i]
		sources = append(sources, src)
	}
	return sources, nil
}

// sourceFile looks at a source before SQLite does.
func (s *Store) sourceFile(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	exists, err := inspect(path)
	if err != nil {
		return "", err
	}
	if !exists {
		return "", &Fault{Path: path, Kind: ErrNotFound, Detail: "no database to merge from", Hint: "give the path of a results database"}
	}
	own, err := os.Stat(s.path)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err == nil && os.SameFile(own, info) {
		return "", fmt.Errorf("%s is the database to merge into: %w", name, ErrInvalid)
	}
	return path, nil
}

// closeSources comes after the sources were detached.
func closeSources(sources []source) {
	for _, src := range sources {
		if src.held != nil {
			src.held.Close()
		}
	}
}

// openSource opens a source the way a report would, and says how it can be
// attached: for reading only, so that a merge never holds up its writers.
func openSource(ctx context.Context, path, tmp string) (source, error) {
	src := source{path: path, dsn: dsn(path, "mode=ro"), held: &Store{path: path}}
	version, way, err := src.held.attachReader(ctx, path)
	known := SchemaVersion()
	switch {
	case err != nil:
		err = faultOf(path, err)
	case version > known:
		err = newer(path, version, known)
	case version < known:
		var copied string
		if err = os.Mkdir(tmp, 0o700); err == nil {
			if copied, err = migratedCopy(ctx, path, tmp); err == nil {
				src.dsn = dsn(copied, "mode=ro")
			}
		}
	case way == readWays[2]:
		src.dsn = dsn(path, way)
	}
	if err != nil {
		closeSources([]source{src})
	}
	return src, err
}

// attach makes a source visible to a connection and looks whether it is what
// it says: our tables, not views or others of the same name, and whole pages.
func attach(ctx context.Context, conn *sql.Conn, src *source, n int) error {
	src.schema = fmt.Sprintf("src%d", n)
	if _, err := conn.ExecContext(ctx, "ATTACH ? AS "+src.schema, src.dsn); err != nil {
		return faultOf(src.path, err)
	}
	err := sameTables(ctx, conn, src)
	if err == nil {
		var state string
		if err = conn.QueryRowContext(ctx, "PRAGMA "+src.schema+".quick_check(1)").Scan(&state); err == nil && state != "ok" {
			err = src.corrupt(state)
		}
	}
	if err != nil {
		detach(ctx, conn, src.schema)
	}
	return faultOf(src.path, err)
}

// detach lets go of a source. It is read only, so a failure loses nothing.
func detach(ctx context.Context, conn *sql.Conn, schema string) {
	_, _ = conn.ExecContext(context.WithoutCancel(ctx), "DETACH "+schema)
}

func sameTables(ctx context.Context, conn *sql.Conn, src *source) error {
	for _, e := range entities {
		var same bool
		err := conn.QueryRowContext(ctx, `SELECT m.sql = s.sql FROM main.sqlite_schema m, `+src.schema+`.sqlite_schema s
			WHERE m.type = 'table' AND s.type = 'table' AND m.name = ?1 AND s.name = ?1`, e.table).Scan(&same)
		if errors.Is(err, sql.ErrNoRows) || (err == nil && !same) {
			return src.corrupt("table " + e.table + " is not as schema says")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// judgeNew refuses rows that nobody has yet and that are not sound in
// themselves.
func judgeNew(ctx context.Context, tx *sql.Tx, e entity, src *source) error {
	blob := "''"
	if e.extra == "data" {
		blob = "bmoe_blob_fault('" + e.table + "', s.body, s.data)"
	}
	rows, err := column(ctx, tx, fmt.Sprintf(
		`SELECT substr(s.%[2]s, 1, 200) || ': ' || f FROM (SELECT *, bmoe_fault('%[1]s', %[2]s, %[3]s) || %[6]s AS f FROM %[4]s.%[1]s s
			WHERE NOT EXISTS (SELECT 1 FROM main.%[1]s m WHERE m.%[2]s = s.%[2]s)) s WHERE f <> '' LIMIT %[5]d`,
		e.table, e.key, e.content, src.schema, 1, blob))
	if err != nil {
		return faultOf(src.path, err)
	}
	if len(rows) > 0 {
		return src.corrupt(e.table + " " + rows[0])
	}
	return nil
}

// links are the rules between rows that foreign keys cannot express; each query
// gives the ids that break it. %s is the schema of the rows that are judged.
var links = []struct{ what, query string }{
	{"samples are not those of their run", `SELECT s.run_id FROM %s.samples s JOIN main.run r ON r.id = s.run_id WHERE bmoe_sha(s.data) IS NOT r.body ->> '$.sample_sha256'`},
	{"tokens are not those of their run", `SELECT s.run_id FROM %s.tokens s JOIN main.run r ON r.id = s.run_id WHERE bmoe_sha(s.data) IS NOT r.body ->> '$.token_sha256'`},
	{"private text belongs to nothing", `SELECT p.owner_id FROM %s.private p WHERE NOT EXISTS (SELECT 1 FROM main.run WHERE id = p.owner_id)
		AND NOT EXISTS (SELECT 1 FROM main.experiment WHERE id = p.owner_id) AND NOT EXISTS (SELECT 1 FROM main.prediction WHERE id = p.owner_id)`},
	{"event is about nothing", `SELECT e.id FROM %s.event e WHERE NOT EXISTS (SELECT 1 FROM main.run WHERE id = e.subject)
		AND NOT EXISTS (SELECT 1 FROM main.experiment WHERE id = e.subject)`},
	{"run is of an arm its experiment does not have", `SELECT r.id FROM %s.run r WHERE r.experiment_id IS NOT NULL AND r.arm NOT IN
		(SELECT a.value ->> '$.name' FROM main.experiment e, json_each(e.body, '$.arms') a WHERE e.id = r.experiment_id)`},
}

func judgeLinks(ctx context.Context, tx *sql.Tx, src *source) error {
	for _, l := range links {
		ids, err := column(ctx, tx, fmt.Sprintf(l.query, src.schema)+" LIMIT 1")
		if err != nil {
			return faultOf(src.path, err)
		}
		if len(ids) > 0 {
			return src.corrupt(l.what + ": " + short(ids[0]))
		}
	}
	return nil
}

func isConstraint(err error) bool {
	var se sqlite.Error
	return errors.As(err, &se) && se.Code == sqlite.ErrConstraint
}
