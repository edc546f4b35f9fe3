package exchange

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// Limits of an imported file: it comes from anywhere.
const (
	maxLine = 1 << 20
	maxRows = 1 << 20
)

// peerRow is what is read of a llama-bench row.
type peerRow struct {
	BuildCommit   string    `json:"build_commit"`
	CPUInfo       string    `json:"cpu_info"`
	Backends      string    `json:"backends"`
	ModelFilename string    `json:"model_filename"`
	ModelType     string    `json:"model_type"`
	ModelSize     int64     `json:"model_size"`
	NBatch        int       `json:"n_batch"`
	NUBatch       int       `json:"n_ubatch"`
	NThreads      int       `json:"n_threads"`
	TypeK         string    `json:"type_k"`
	TypeV         string    `json:"type_v"`
	NGPULayers    int       `json:"n_gpu_layers"`
	LoadMode      string    `json:"load_mode"`
	NPrompt       int64     `json:"n_prompt"`
	NGen          int64     `json:"n_gen"`
	NDepth        int64     `json:"n_depth"`
	TestTime      time.Time `json:"test_time"`
	AvgNS         float64   `json:"avg_ns"`
	AvgTS         float64   `json:"avg_ts"`
	StddevTS      float64   `json:"stddev_ts"`
	SamplesNS     []int64   `json:"samples_ns"`
}

// Known says what the importer knows and llama-bench does not write.
type Known struct {
	Machine *record.Machine // that it ran on
	Model   *record.Model   // that it ran
}

// ReadLlamaBench reads the rows of llama-bench -o jsonl as runs of a peer. A
// row that mixes prompt and generation in one rate is left out with a note;
// anything that is not such a row fails, with its line number.
func ReadLlamaBench(r io.Reader, known Known) (runs []record.Run, notes []string, err error) {
	scan := bufio.NewScanner(r)
	scan.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; scan.Scan(); n++ {
		line := bytes.TrimSpace(scan.Bytes())
		if len(line) == 0 {
			continue
		}
		if len(runs) == maxRows {
			return nil, nil, fmt.Errorf("line %d: more than %d rows", n, maxRows)
		}
		run, note, err := readRow(line, known)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", n, err)
		}
		if note != "" {
			notes = append(notes, fmt.Sprintf("line %d: %s", n, note))
			continue
		}
		runs = append(runs, run)
	}
	if errors.Is(scan.Err(), bufio.ErrTooLong) {
		return nil, nil, fmt.Errorf("a line of more than %d bytes", maxLine)
	}
	return runs, notes, scan.Err()
}

func readRow(line []byte, known Known) (run record.Run, note string, err error) {
	var row peerRow
	if err := json.Unmarshal(line, &row); err != nil {
		return run, "", fmt.Errorf("not a llama-bench row: %w", err)
	}
	var raw map[string]any
	if err := json.Unmarshal(line, &raw); err != nil {
		return run, "", fmt.Errorf("not a llama-bench row: %w", err)
	}
	if err := row.check(); err != nil {
		return run, "", err
	}
	if row.NPrompt > 0 && row.NGen > 0 {
		return run, fmt.Sprintf("pp%d+tg%d is one rate for two things; left out", row.NPrompt, row.NGen), nil
	}
	delete(raw, "model_filename") // a path
	delete(raw, "samples_ns")
	delete(raw, "samples_ts")
	return row.run(raw, known), "", nil
}

func (row *peerRow) check() error {
	switch {
	case row.NPrompt < 0 || row.NGen < 0 || row.NDepth < 0 || row.NPrompt+row.NGen == 0:
		return fmt.Errorf("n_prompt %d, n_gen %d: not a llama-bench row", row.NPrompt, row.NGen)
	case row.NPrompt > 1<<40 || row.NGen > 1<<40:
		return fmt.Errorf("n_prompt %d, n_gen %d: too many tokens", row.NPrompt, row.NGen)
	case !(row.AvgTS > 1e-9 && row.AvgTS < 1e12):
		return fmt.Errorf("avg_ts %v: want tokens per second", row.AvgTS)
	case !(row.StddevTS >= 0) || math.IsInf(row.StddevTS, 0):
		return fmt.Errorf("stddev_ts %v: want tokens per second", row.StddevTS)
	case row.TestTime.IsZero():
		return errors.New("no test_time")
	case row.ModelSize < 0:
		return fmt.Errorf("model_size %d", row.ModelSize)
	case row.TestTime.Year() > 9999 || row.TestTime.Year() < 2000:
		return fmt.Errorf("test_time %v", row.TestTime)
	}
	return nil
}

func (row *peerRow) run(raw map[string]any, known Known) record.Run {
	r := record.Run{
		Schema: record.RunSchema, StartedAt: row.TestTime.UTC(), State: record.StateDone,
		Build:   record.Build{LlamaCPP: row.BuildCommit},
		Machine: record.Machine{CPU: row.CPUInfo},
		Model:   record.Model{Name: record.BaseName(row.ModelFilename), Quant: row.ModelType, Bytes: row.ModelSize},
		Config:  row.config(),
		Peer:    &record.Peer{Tool: "llama-bench", StddevTS: row.StddevTS, Repetitions: max(1, len(row.SamplesNS)), Row: raw},
	}
	if known.Machine != nil {
		r.Machine = *known.Machine
	}
	if known.Model != nil {
		r.Model = *known.Model
	}
	var total int64
	for _, ns := range row.SamplesNS {
		if ns > 0 && ns < math.MaxInt64-total {
			total += ns
		}
	}
	r.FinishedAt = r.StartedAt.Add(time.Duration(total))
	if row.NGen > 0 {
		r.Peer.Test = fmt.Sprintf("tg%d", row.NGen)
		r.Measured = record.Measured{DecodeSPerToken: 1 / row.AvgTS, DecodeTokens: row.NGen}
	} else {
		r.Peer.Test = fmt.Sprintf("pp%d", row.NPrompt)
		r.Measured = record.Measured{PrefillTokensPerS: row.AvgTS, PromptTokens: row.NPrompt}
	}
	if row.NDepth > 0 {
		r.Peer.Test += fmt.Sprintf(" @ d%d", row.NDepth)
	}
	if y := r.FinishedAt.Year(); y > 9999 {
		r.FinishedAt = r.StartedAt
	}
	return r
}

// config keeps the settings that mean the same here.
func (row *peerRow) config() config.Config {
	c := config.Default()
	c.MoeStream = false
	for name, value := range map[string]string{
		"threads": fmt.Sprint(row.NThreads), "batch-size": fmt.Sprint(row.NBatch), "ubatch": fmt.Sprint(row.NUBatch),
		"gpu-layers": fmt.Sprint(max(0, row.NGPULayers)), "load-mode": row.LoadMode, "cache-type-k": row.TypeK, "cache-type-v": row.TypeV,
		"predict": fmt.Sprint(row.NGen),
	} {
		p, ok := config.Lookup(name)
		if !ok || (p.Kind == config.Enum && !slices.Contains(p.Enum, value)) {
			continue
		}
		before := c
		if err := p.Set(&c, value); err != nil { // out of our range: keep the default
			c = before
		}
	}
	return c
}
