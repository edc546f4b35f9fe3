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
}

func (src *source) corrupt(what string) error {
	return &Fault{Path: src.path, Kind: ErrCorrupt, Detail: what, Hint: "nothing was merged; ask for another copy, or run `bmoe db check --db " + src.name + "`"}
}

// prepareSources refuses what is not a sound ledger before anything is done,
// and finds out how each source can be read.
func (s *Store) prepareSources(ctx context.Context, paths []string, tmp string) ([]source, error) {
	own, err := os.Stat(s.path)
	if err != nil {
		return nil, err
	}
	var sources []source
	for i, name := range paths {
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		exists, err := inspect(path)
		if err != nil {
			return nil, err
		}
		if !exists {
			return nil, &Fault{Path: path, Kind: ErrNotFound, Detail: "no database to merge from", Hint: "give the path of a results database"}
		}
		if info, err := os.Stat(path); err == nil && os.SameFile(own, info) {
			return nil, fmt.Errorf("%s is the database to merge into: %w", name, ErrInvalid)
		}
		uri, err := readableDSN(ctx, path, filepath.Join(tmp, fmt.Sprint(i)))
		if err != nil {
			return nil, err
		}
		sources = append(sources, source{name: name, path: path, dsn: uri})
	}
	return sources, nil
}

// readableDSN opens a source the way a report would, and says how.
func readableDSN(ctx context.Context, path, tmp string) (string, error) {
	probe := &Store{path: path}
	defer func() {
		if probe.reader != nil {
			probe.reader.Close()
		}
	}()
	version, params, err := probe.attachReader(ctx, path)
	if err != nil {
		return "", faultOf(path, err)
	}
	known := SchemaVersion()
	if version > known {
		return "", newer(path, version, known)
	}
	if version == known {
		return dsn(path, params), nil
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return "", err
	}
	copied, err := migratedCopy(ctx, path, tmp)
	if err != nil {
		return "", err
	}
	return dsn(copied, "mode=ro"), nil
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
		conn.ExecContext(context.WithoutCancel(ctx), "DETACH "+src.schema)
	}
	return faultOf(src.path, err)
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
