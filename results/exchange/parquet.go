package exchange

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/bmoe/bmoe/results/record"
)

// TokenRow is one decoded token's time.
type TokenRow struct {
	RunID    string `parquet:"run_id,dict"`
	Token    int32  `parquet:"token,delta"` // its number in the run, from 0
	NS       int64  `parquet:"ns,delta"`
	WaitNS   *int64 `parquet:"wait_ns,optional"`
	ManageNS *int64 `parquet:"manage_ns,optional"`
}

// ComparisonRow is one comparison of a verdict that stands.
type ComparisonRow struct {
	ExperimentID string    `parquet:"experiment_id"`
	RegisteredAt time.Time `parquet:"registered_at,timestamp(microsecond)"`
	Lever        string    `parquet:"lever"`
	Kind         string    `parquet:"kind"`
	Metric       string    `parquet:"metric"`
	MachineID    string    `parquet:"machine_id"`
	ModelID      string    `parquet:"model_id"`
	Method       string    `parquet:"method"`
	Arm          string    `parquet:"arm"`
	Baseline     string    `parquet:"baseline"`
	Pairs        int64     `parquet:"pairs"`
	Effect       float64   `parquet:"effect"` // ratio less one; positive is better
	Lo           float64   `parquet:"lo"`
	Hi           float64   `parquet:"hi"`
	Level        float64   `parquet:"level"`
	P            float64   `parquet:"p"`
	PHolm        float64   `parquet:"p_holm"`
	Verdict      string    `parquet:"verdict"`
}

// partition is a machine's month.
type partition struct{ machine, month string }

func partitionOf(machine string, at time.Time) partition {
	return partition{head(machine, 12), at.UTC().Format("2006-01")}
}

// Parquet writes a data set under dir: runs/, tokens/ and comparisons/, each in
// folders machine=ID/month=YYYY-MM. A partition's file is replaced whole, so
// exporting the same ledger again changes nothing. It returns the files.
func Parquet(dir string, l *Ledger) ([]string, error) {
	levers := l.levers()
	runs, tokens, comparisons := map[partition][]Row{}, map[partition][]TokenRow{}, map[partition][]ComparisonRow{}
	for _, s := range l.Runs {
		at := partitionOf(s.Run.Machine.ID, s.Run.StartedAt)
		runs[at] = append(runs[at], NewRow(s, levers))
		tokens[at] = append(tokens[at], tokenRows(&s.Run)...)
	}
	experiments := map[string]record.Experiment{}
	for _, e := range l.Experiments {
		experiments[e.ID] = e
	}
	for _, v := range l.Verdicts {
		e := experiments[v.ExperimentID]
		at := partitionOf(e.Machine.ID, e.RegisteredAt)
		comparisons[at] = append(comparisons[at], comparisonRows(e, v)...)
	}
	var files []string
	for _, write := range []func() ([]string, error){
		func() ([]string, error) { return writePartitions(dir, "runs", runs) },
		func() ([]string, error) { return writePartitions(dir, "tokens", tokens) },
		func() ([]string, error) { return writePartitions(dir, "comparisons", comparisons) },
	} {
		names, err := write()
		if err != nil {
			return files, err
		}
		files = append(files, names...)
	}
	return files, nil
}

func tokenRows(r *record.Run) []TokenRow {
	rows := make([]TokenRow, len(r.TokenNS))
	for i, ns := range r.TokenNS {
		rows[i] = TokenRow{RunID: r.RunID, Token: int32(i), NS: ns}
		if i < len(r.TokenWaitNS) {
			rows[i].WaitNS = &r.TokenWaitNS[i]
		}
		if i < len(r.TokenManageNS) {
			rows[i].ManageNS = &r.TokenManageNS[i]
		}
	}
	return rows
}

func comparisonRows(e record.Experiment, v record.Verdict) []ComparisonRow {
	var rows []ComparisonRow
	for _, c := range v.Comparisons {
		rows = append(rows, ComparisonRow{
			ExperimentID: e.ID, RegisteredAt: e.RegisteredAt.UTC(), Lever: e.Lever, Kind: e.Kind, Metric: e.Metric,
			MachineID: e.Machine.ID, ModelID: e.Model.ID, Method: v.Method, Arm: c.Arm, Baseline: c.Baseline, Pairs: int64(c.Pairs),
			Effect: c.Effect, Lo: c.Lo, Hi: c.Hi, Level: c.Level, P: c.P, PHolm: c.PHolm, Verdict: c.Verdict,
		})
	}
	return rows
}

func writePartitions[T any](dir, set string, parts map[partition][]T) ([]string, error) {
	keys := make([]partition, 0, len(parts))
	for k, rows := range parts {
		if len(rows) > 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b partition) int {
		return slices.Compare([]string{a.machine, a.month}, []string{b.machine, b.month})
	})
	var files []string
	for _, k := range keys {
		folder := filepath.Join(dir, set, "machine="+k.machine, "month="+k.month)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return files, err
		}
		name := filepath.Join(folder, set+".parquet")
		if err := writeParquet(name, parts[k]); err != nil {
			return files, fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, name)
	}
	return files, nil
}

// writeParquet replaces a file whole or not at all.
func writeParquet[T any](name string, rows []T) (err error) {
	tmp := name + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(tmp)
		}
	}()
	w := parquet.NewGenericWriter[T](f, parquet.Compression(&parquet.Zstd))
	if _, err = w.Write(rows); err != nil {
		return err
	}
	if err = w.Close(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}
