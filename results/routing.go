package results

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/bmoe/bmoe/results/record"
)

// maxTrace bounds a routing trace read back from a ledger.
const maxTrace = 1 << 30

// traceBody and histogramBody are the stored forms, with the hash of the blob
// in place of what it holds.
type traceBody struct {
	record.Trace
	CSV     *struct{} `json:"csv,omitempty"`
	DataSHA string    `json:"data_sha256"`
}

type histogramBody struct {
	record.Histogram
	Bins    *struct{} `json:"bins,omitempty"`
	DataSHA string    `json:"data_sha256"`
}

// SaveHistogram stores the stack distances of a routing and returns their id.
func (s *Store) SaveHistogram(ctx context.Context, h record.Histogram) (string, error) {
	h.ID = ""
	data := packBins(h.Bins)
	return s.putBlob(ctx, "histogram", histogramBody{Histogram: h, DataSHA: record.HashID(data)}, data)
}

// SaveTrace stores a recorded routing and returns its id.
func (s *Store) SaveTrace(ctx context.Context, t record.Trace) (string, error) {
	t.ID, t.At = "", t.At.UTC()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	if _, err := zw.Write(t.CSV); err != nil {
		return "", err
	}
	if err := zw.Close(); err != nil {
		return "", err
	}
	return s.putBlob(ctx, "trace", traceBody{Trace: t, DataSHA: record.HashID(t.CSV)}, buf.Bytes())
}

func (s *Store) putBlob(ctx context.Context, table string, body any, data []byte) (string, error) {
	canon, err := record.Canonical(body)
	if err != nil {
		return "", fmt.Errorf("%s: %w: %w", table, ErrInvalid, err)
	}
	id := record.HashID(canon)
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+table+" (id, body, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", id, string(canon), data)
		return err
	})
	return id, err
}

// Histograms returns the stack distances known of a model (id or prefix; "" is
// all models).
func (s *Store) Histograms(ctx context.Context, model string) ([]record.Histogram, error) {
	query, args, err := s.ofModel(ctx, "histogram", model)
	if err != nil {
		return nil, err
	}
	var out []record.Histogram
	err = s.each(ctx, query, args, func(rows *sql.Rows) error {
		var id string
		var body, data sql.RawBytes
		if err := rows.Scan(&id, &body, &data); err != nil {
			return err
		}
		var b histogramBody
		if err := decode(body, &b); err != nil {
			return fmt.Errorf("histogram %s: %w", short(id), err)
		}
		h := b.Histogram
		if h.Bins, err = unpackBins(data); err != nil {
			return fmt.Errorf("histogram %s: %w: %w", short(id), ErrCorrupt, err)
		}
		h.ID = id
		out = append(out, h)
		return nil
	})
	return out, err
}

// Traces returns the routings recorded of a model (id or prefix; "" is all).
func (s *Store) Traces(ctx context.Context, model string) ([]record.Trace, error) {
	query, args, err := s.ofModel(ctx, "trace", model)
	if err != nil {
		return nil, err
	}
	var out []record.Trace
	err = s.each(ctx, query, args, func(rows *sql.Rows) error {
		var id string
		var body, data sql.RawBytes
		if err := rows.Scan(&id, &body, &data); err != nil {
			return err
		}
		var b traceBody
		if err := decode(body, &b); err != nil {
			return fmt.Errorf("trace %s: %w", short(id), err)
		}
		t := b.Trace
		if t.CSV, err = gunzip(data); err != nil {
			return fmt.Errorf("trace %s: %w: %w", short(id), ErrCorrupt, err)
		}
		t.ID = id
		out = append(out, t)
		return nil
	})
	return out, err
}

func (s *Store) ofModel(ctx context.Context, table, model string) (query string, args []any, err error) {
	query = "SELECT id, body, data FROM " + table
	if model != "" {
		id, err := resolve(ctx, s.reader, "model", model)
		if err != nil {
			return "", nil, s.fault(err)
		}
		query, args = query+" WHERE model_id = ?", []any{id}
	}
	return query + " ORDER BY id", args, nil
}

func gunzip(data []byte) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(zr, maxTrace+1))
	if err == nil && len(out) > maxTrace {
		err = fmt.Errorf("more than %d bytes", maxTrace)
	}
	return out, err
}

// packBins writes distance differences and counts as varints.
func packBins(bins []record.HistogramBin) []byte {
	buf := binary.AppendUvarint(nil, uint64(len(bins)))
	var last int64
	for _, b := range bins {
		buf = binary.AppendVarint(buf, b.Bytes-last)
		buf = binary.AppendVarint(buf, b.Count)
		last = b.Bytes
	}
	return buf
}

func unpackBins(data []byte) ([]record.HistogramBin, error) {
	n, w := binary.Uvarint(data)
	if w <= 0 || n > uint64(len(data)) {
		return nil, fmt.Errorf("packed bins are cut short")
	}
	data = data[w:]
	var bins []record.HistogramBin
	if n > 0 {
		bins = make([]record.HistogramBin, n)
	}
	var last int64
	for i := range bins {
		d, w1 := binary.Varint(data)
		if w1 <= 0 {
			return nil, fmt.Errorf("packed bin %d is cut short", i)
		}
		c, w2 := binary.Varint(data[w1:])
		if w2 <= 0 {
			return nil, fmt.Errorf("packed bin %d is cut short", i)
		}
		data = data[w1+w2:]
		last += d
		bins[i] = record.HistogramBin{Bytes: last, Count: c}
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("packed bins: %d bytes too many", len(data))
	}
	return bins, nil
}
