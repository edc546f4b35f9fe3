package results

import (
	"context"
	"os"
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
