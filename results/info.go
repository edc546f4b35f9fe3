package results

import (
	"context"
	"database/sql"
	"os"
	"slices"

	"github.com/bmoe/bmoe/results/record"
)

// Info describes a ledger.
type Info struct {
	Path           string      `json:"path"`
	Schema         int         `json:"schema"`
	Bytes          int64       `json:"bytes"` // of the file
	LogBytes       int64       `json:"wal_bytes"`
	FreeBytes      int64       `json:"free_bytes"` // unused pages: what `bmoe db vacuum` gives back
	Digest         string      `json:"digest"`
	Tables         []TableInfo `json:"tables"`
	Samples        int64       `json:"samples"`          // per-token times
	BytesPerSample float64     `json:"bytes_per_sample"` // of the whole file; 0 without samples
	First          string      `json:"first_run,omitempty"`
	Last           string      `json:"last_run,omitempty"`
	Void           int         `json:"void"` // statements that something does not count
}

// TableInfo counts a table's rows and the bytes of what they hold.
type TableInfo struct {
	Name  string `json:"name"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// Info reads how much of what the ledger holds.
func (s *Store) Info(ctx context.Context) (Info, error) {
	info := Info{Path: s.path, LogBytes: walSize(s.path)}
	if st, err := os.Stat(s.path); err == nil {
		info.Bytes = st.Size()
	}
	var err error
	if info.Schema, err = userVersion(ctx, s.reader); err != nil {
		return info, s.fault(err)
	}
	for _, e := range entities {
		t := TableInfo{Name: e.table}
		size := "length(CAST(" + e.content + " AS BLOB))"
		if e.extra == "data" {
			size += " + length(data)"
		}
		if err := s.reader.QueryRowContext(ctx, "SELECT count(*), coalesce(sum("+size+"), 0) FROM "+e.table).Scan(&t.Rows, &t.Bytes); err != nil {
			return info, s.fault(err)
		}
		info.Tables = append(info.Tables, t)
	}
	err = s.reader.QueryRowContext(ctx, `SELECT coalesce(sum(r.sample_count), 0), coalesce(min(r.started_at), ''), coalesce(max(r.started_at), ''),
		(SELECT count(*) FROM void), (SELECT f.freelist_count * p.page_size FROM pragma_freelist_count f, pragma_page_size p) FROM run r`).
		Scan(&info.Samples, &info.First, &info.Last, &info.Void, &info.FreeBytes)
	if err != nil {
		return info, s.fault(err)
	}
	if info.Samples > 0 {
		info.BytesPerSample = float64(info.Bytes+info.LogBytes) / float64(info.Samples)
	}
	info.Digest, err = s.Digest(ctx)
	return info, err
}

// ModelLine is a model of the ledger with how often it ran.
type ModelLine struct {
	ID    string   `json:"id"`
	Names []string `json:"names"` // as runs called it
	Arch  string   `json:"arch"`
	Quant string   `json:"quant"`
	Runs  int      `json:"runs"`
}

// MachineLine is a machine of the ledger with how often it was used.
type MachineLine struct {
	ID   string `json:"id"`
	CPU  string `json:"cpu"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
	Runs int    `json:"runs"`
}

// Models lists the models that ran, most runs first.
func (s *Store) Models(ctx context.Context) ([]ModelLine, error) {
	var out []ModelLine
	err := s.each(ctx, `SELECT m.id, coalesce(m.arch, ''), coalesce(m.quant, ''), count(r.id),
		coalesce(json_group_array(DISTINCT r.body ->> '$.model_name') FILTER (WHERE r.body ->> '$.model_name' <> ''), '[]')
		FROM model m LEFT JOIN run r ON r.model_id = m.id GROUP BY m.id ORDER BY count(r.id) DESC, m.id`, nil, func(rows *sql.Rows) error {
		var l ModelLine
		var names sql.RawBytes
		if err := rows.Scan(&l.ID, &l.Arch, &l.Quant, &l.Runs, &names); err != nil {
			return err
		}
		if err := decode(names, &l.Names); err != nil {
			return err
		}
		slices.Sort(l.Names)
		out = append(out, l)
		return nil
	})
	return out, err
}

// Machines lists the machines that ran something or were probed, most runs
// first.
func (s *Store) Machines(ctx context.Context) ([]MachineLine, error) {
	var out []MachineLine
	err := s.each(ctx, `SELECT m.id, coalesce(m.cpu, ''), coalesce(m.os, ''), coalesce(m.arch, ''), count(r.id)
		FROM machine m LEFT JOIN run r ON r.machine_id = m.id GROUP BY m.id ORDER BY count(r.id) DESC, m.id`, nil, func(rows *sql.Rows) error {
		var l MachineLine
		if err := rows.Scan(&l.ID, &l.CPU, &l.OS, &l.Arch, &l.Runs); err != nil {
			return err
		}
		out = append(out, l)
		return nil
	})
	return out, err
}

// Model returns a model by its id or the beginning of it.
func (s *Store) Model(ctx context.Context, id string) (m record.Model, err error) {
	m.ID, err = s.byID(ctx, "model", id, &m)
	return m, err
}

// Machine returns a machine by its id or the beginning of it.
func (s *Store) Machine(ctx context.Context, id string) (m record.Machine, err error) {
	m.ID, err = s.byID(ctx, "machine", id, &m)
	return m, err
}

func (s *Store) byID(ctx context.Context, table, prefix string, into any) (string, error) {
	id, err := resolve(ctx, s.reader, table, prefix)
	if err != nil {
		return "", s.fault(err)
	}
	var body []byte
	if err := s.reader.QueryRowContext(ctx, "SELECT body FROM "+table+" WHERE id = ?", id).Scan(&body); err != nil {
		return "", s.fault(err)
	}
	return id, decode(body, into)
}
