package results

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
)

// SchemaDoc describes the newest schema as markdown, taken from the schema
// itself: tables with what their comments say, columns, references, and an
// entity diagram. docs/schema.md is this text; a test keeps it so.
func SchemaDoc() (string, error) {
	ctx := context.Background()
	db, err := sql.Open(driverName, ":memory:")
	if err != nil {
		return "", err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	steps, err := migrations()
	if err != nil {
		return "", err
	}
	if err := applySteps(ctx, db, steps); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(schemaIntro)
	fmt.Fprintf(&b, "\nThis is schema %d (`PRAGMA user_version`), made by:\n\n", len(steps))
	for _, step := range steps {
		fmt.Fprintf(&b, "- `results/migrations/%s`\n", step.name)
	}
	comments := tableComments(steps)
	tables, err := column(ctx, db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid")
	if err != nil {
		return "", err
	}
	if err := diagram(ctx, db, &b, tables); err != nil {
		return "", err
	}
	b.WriteString("\n## Tables\n")
	for _, t := range tables {
		if err := describe(ctx, db, &b, t, comments[t]); err != nil {
			return "", err
		}
	}
	if err := describeRest(ctx, db, &b); err != nil {
		return "", err
	}
	return b.String(), nil
}

const schemaIntro = `# The ledger's schema

Generated from the migrations; ` + "`go test ./results -run SchemaDoc -update`" + ` writes it anew.

- An entity is one row: ` + "`body`" + ` is its canonical JSON (sorted keys, no white space, numbers as
  written), ` + "`id`" + ` the sha256 of that JSON in hex. The id of a model comes from its file instead.
  The other columns are generated from the body, so they cannot disagree with it.
- Nothing is updated. Triggers refuse UPDATE and DELETE on runs, predictions, experiments and
  events; what is learnt later (void, resume) is an event. ` + "`bmoe db prune`" + ` is the one way out.
- Times are UTC with milliseconds in columns, and as written in bodies.
- What may name a person, a path or a host, or quotes a prompt or an answer, is in ` + "`private`" + `,
  ` + "`tokens`" + ` and ` + "`trace`" + `. It takes no part in the id of what it belongs to, so a copy without it
  (` + "`bmoe db export --format db`" + `) merges with one that has it.
- Verdicts and fits are derived. A verdict names the runs it saw by a hash (` + "`inputs`" + `); it stands
  while the experiment has those runs, and ` + "`bmoe db check`" + ` computes it again.
`

var commentLine = regexp.MustCompile(`(?m)((?:^-- .*\n)+)CREATE TABLE (\w+)`)

// tableComments are the comment lines right above each CREATE TABLE.
func tableComments(steps []migration) map[string]string {
	out := map[string]string{}
	for _, step := range steps {
		for _, m := range commentLine.FindAllStringSubmatch(step.sql, -1) {
			lines := strings.Split(strings.TrimSpace(m[1]), "\n")
			for i, l := range lines {
				lines[i] = strings.TrimPrefix(l, "-- ")
			}
			out[m[2]] = strings.Join(lines, " ")
		}
	}
	return out
}

// reference is a foreign key of a table.
type reference struct {
	column, parent string
	required       bool
}

func references(ctx context.Context, db *sql.DB, table string) ([]reference, error) {
	rows, err := db.QueryContext(ctx, `SELECT f."from", f."table", max(x."notnull") FROM pragma_foreign_key_list(?1) f
		JOIN pragma_table_xinfo(?1) x ON x.name = f."from" GROUP BY 1, 2 ORDER BY min(x.cid)`, table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []reference
	for rows.Next() {
		var r reference
		if err := rows.Scan(&r.column, &r.parent, &r.required); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

func diagram(ctx context.Context, db *sql.DB, b *strings.Builder, tables []string) error {
	b.WriteString("\n## Diagram\n\n```mermaid\nerDiagram\n")
	for _, t := range tables {
		refs, err := references(ctx, db, t)
		if err != nil {
			return err
		}
		for _, r := range refs {
			parent := "||"
			if !r.required {
				parent = "|o"
			}
			child := "o{"
			if r.column == "run_id" && (t == "samples" || t == "tokens") { // its primary key
				child = "o|"
			}
			fmt.Fprintf(b, "    %s %s--%s %s : %s\n", r.parent, parent, child, t, r.column)
		}
	}
	b.WriteString("```\n")
	return nil
}

// describe writes one table's comment and columns.
func describe(ctx context.Context, db *sql.DB, b *strings.Builder, table, comment string) error {
	fmt.Fprintf(b, "\n### %s\n\n", table)
	if comment != "" {
		fmt.Fprintf(b, "%s\n\n", comment)
	}
	refs, err := references(ctx, db, table)
	if err != nil {
		return err
	}
	parents := map[string]string{}
	for _, r := range refs {
		parents[r.column] = r.parent
	}
	var create string
	if err := db.QueryRowContext(ctx, "SELECT sql FROM sqlite_schema WHERE name = ?", table).Scan(&create); err != nil {
		return err
	}
	b.WriteString("| column | type | |\n|---|---|---|\n")
	rows, err := db.QueryContext(ctx, `SELECT name, type, "notnull", pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid`, table)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, kind string
		var required, key, hidden int
		if err := rows.Scan(&name, &kind, &required, &key, &hidden); err != nil {
			return err
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, kind, notes(name, create, parents[name], required, key, hidden))
	}
	return rows.Err()
}

var generated = regexp.MustCompile(`(?m)^\s*(\w+).*GENERATED ALWAYS AS \((.*?)\)(?: REFERENCES \w+ \(\w+\))?,?$`)

func notes(name, create, parent string, required, key, hidden int) string {
	var out []string
	if key > 0 {
		out = append(out, "primary key")
	}
	if hidden > 0 {
		for _, m := range generated.FindAllStringSubmatch(create, -1) {
			if m[1] == name {
				out = append(out, "`"+m[2]+"`")
			}
		}
	}
	if parent != "" {
		out = append(out, "refers to "+parent)
	}
	if required == 0 && key == 0 {
		out = append(out, "may be absent")
	}
	return strings.Join(out, ", ")
}

// describeRest lists views, indexes and triggers.
func describeRest(ctx context.Context, db *sql.DB, b *strings.Builder) error {
	b.WriteString("\n## Views\n\nThe entities inside the bodies, to read from with any SQLite program.\n\n| view | columns |\n|---|---|\n")
	views, err := column(ctx, db, "SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY rowid")
	if err != nil {
		return err
	}
	for _, v := range views {
		cols, err := column(ctx, db, "SELECT name FROM pragma_table_xinfo(?) ORDER BY cid", v)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "| %s | %s |\n", v, strings.Join(cols, ", "))
	}
	for _, kind := range []struct{ name, title string }{{"index", "Indexes"}, {"trigger", "Triggers"}} {
		names, err := column(ctx, db, "SELECT name || ' on ' || tbl_name FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL ORDER BY name", kind.name)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "\n## %s\n\n", kind.title)
		for _, n := range names {
			fmt.Fprintf(b, "- %s\n", n)
		}
	}
	return nil
}
