package exchange

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// benchField is one column of llama-bench's output, v0.4.0, and its SQL type.
type benchField struct{ name, kind string }

var benchFields = []benchField{
	{"build_commit", "TEXT"},
	{"build_number", "INTEGER"},
	{"cpu_info", "TEXT"},
	{"gpu_info", "TEXT"},
	{"backends", "TEXT"},
	{"model_filename", "TEXT"},
	{"model_type", "TEXT"},
	{"model_size", "INTEGER"},
	{"model_n_params", "INTEGER"},
	{"n_batch", "INTEGER"},
	{"n_ubatch", "INTEGER"},
	{"n_threads", "INTEGER"},
	{"cpu_mask", "TEXT"},
	{"cpu_strict", "INTEGER"},
	{"poll", "INTEGER"},
	{"type_k", "TEXT"},
	{"type_v", "TEXT"},
	{"n_gpu_layers", "INTEGER"},
	{"n_cpu_moe", "INTEGER"},
	{"split_mode", "TEXT"},
	{"main_gpu", "INTEGER"},
	{"no_kv_offload", "INTEGER"},
	{"flash_attn", "INTEGER"},
	{"devices", "TEXT"},
	{"tensor_split", "TEXT"},
	{"tensor_buft_overrides", "TEXT"},
	{"load_mode", "TEXT"},
	{"lazy_mode", "TEXT"},
	{"embeddings", "INTEGER"},
	{"no_op_offload", "INTEGER"},
	{"no_host", "INTEGER"},
	{"fit_target", "INTEGER"},
	{"fit_min_ctx", "INTEGER"},
	{"n_prompt", "INTEGER"},
	{"n_gen", "INTEGER"},
	{"n_depth", "INTEGER"},
	{"test_time", "TEXT"},
	{"avg_ns", "INTEGER"},
	{"stddev_ns", "INTEGER"},
	{"avg_ts", "REAL"},
	{"stddev_ts", "REAL"},
}

// benchBools are printed as true and false in JSON, as 0 and 1 in SQL.
var benchBools = map[string]bool{"cpu_strict": true, "no_kv_offload": true, "embeddings": true, "no_host": true}

// benchRow is one of our runs as llama-bench would have printed it.
type benchRow struct {
	values map[string]any
	ns     int64
	ts     float64
	runID  string
}

// benchRows gives a run's prompt and generation as one test each (pp, tg). A
// run is one repetition: its standard deviation is zero.
func benchRows(s record.StoredRun) []benchRow {
	r := &s.Run
	m := r.Measured
	var rows []benchRow
	if m.PrefillTokensPerS > 0 && m.PromptTokens > 0 {
		rows = append(rows, newBenchRow(r, m.PromptTokens, 0, float64(m.PromptTokens)/m.PrefillTokensPerS))
	}
	if m.DecodeSPerToken > 0 && m.DecodeTokens > 0 {
		rows = append(rows, newBenchRow(r, 0, m.DecodeTokens, m.DecodeSPerToken*float64(m.DecodeTokens)))
	}
	return rows
}

func newBenchRow(r *record.Run, prompt, gen int64, seconds float64) benchRow {
	c := &r.Config
	ns := int64(seconds * 1e9)
	ts := float64(prompt+gen) / seconds
	commit := r.Build.LlamaCPP
	if r.Build.Commit != "" {
		commit = r.Build.Commit
	}
	values := map[string]any{
		"build_commit": head(commit, 8), "build_number": 0, "cpu_info": r.Machine.CPU, "gpu_info": "", "backends": "CPU",
		"model_filename": r.Model.Name, "model_type": strings.TrimSpace(r.Model.Arch + " " + r.Model.Quant),
		"model_size": r.Model.Bytes, "model_n_params": 0,
		"n_batch": orDefault(c.BatchSize, 2048), "n_ubatch": orDefault(c.UBatchSize, 512), "n_threads": orDefault(c.Threads, r.Machine.Cores),
		"cpu_mask": "0x0", "cpu_strict": 0, "poll": 50, "type_k": c.CacheTypeK, "type_v": c.CacheTypeV,
		"n_gpu_layers": c.GPULayers, "n_cpu_moe": 0, "split_mode": "layer", "main_gpu": 0, "no_kv_offload": 0,
		"flash_attn": flashAttn(c.FlashAttn), "devices": "auto", "tensor_split": "0.00", "tensor_buft_overrides": "none",
		"load_mode": loadMode(c), "lazy_mode": "off", "embeddings": 0, "no_op_offload": 0, "no_host": 0, "fit_target": 0, "fit_min_ctx": 0,
		"n_prompt": prompt, "n_gen": gen, "n_depth": 0, "test_time": r.StartedAt.UTC().Format("2006-01-02T15:04:05Z"),
		"avg_ns": ns, "stddev_ns": 0, "avg_ts": ts, "stddev_ts": 0.0,
	}
	return benchRow{values, ns, ts, r.RunID}
}

// loadMode names streaming in the column where llama-bench names the loader, so
// that its own comparisons keep streamed and mapped runs apart.
func loadMode(c *config.Config) string {
	if c.MoeStream {
		return "moe-stream"
	}
	return c.LoadMode
}

func flashAttn(v string) int {
	switch v {
	case "on":
		return 1
	case "off":
		return 0
	}
	return -1
}

func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}

func head(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// LlamaBenchJSONL writes runs as llama-bench -o jsonl does.
func LlamaBenchJSONL(w io.Writer, l *Ledger) error {
	for _, run := range l.Runs {
		for _, row := range benchRows(run) {
			var b strings.Builder
			b.WriteString("{")
			for _, f := range benchFields {
				v := row.values[f.name]
				if benchBools[f.name] {
					v = v != 0
				}
				text, err := json.Marshal(v)
				if err != nil {
					return fmt.Errorf("run %s: %w", run.Run.RunID, err)
				}
				fmt.Fprintf(&b, "%q: %s, ", f.name, text)
			}
			fmt.Fprintf(&b, `"bmoe_run_id": %q, "samples_ns": [ %d ],"samples_ts": [ %s ]}`, row.runID, row.ns, strconv.FormatFloat(row.ts, 'f', 6, 64))
			if _, err := fmt.Fprintln(w, b.String()); err != nil {
				return err
			}
		}
	}
	return nil
}

// LlamaBenchSQL writes runs as llama-bench -o sql does, ready for sqlite3.
func LlamaBenchSQL(w io.Writer, l *Ledger) error {
	var cols, names []string
	for _, f := range benchFields {
		cols, names = append(cols, "  "+f.name+" "+f.kind), append(names, f.name)
	}
	if _, err := fmt.Fprintf(w, "CREATE TABLE IF NOT EXISTS llama_bench (\n%s\n);\n\n", strings.Join(cols, ",\n")); err != nil {
		return err
	}
	for _, run := range l.Runs {
		for _, row := range benchRows(run) {
			var values []string
			for _, f := range benchFields {
				values = append(values, "'"+strings.ReplaceAll(fmt.Sprint(row.values[f.name]), "'", "''")+"'")
			}
			if _, err := fmt.Fprintf(w, "INSERT INTO llama_bench (%s) VALUES (%s);\n", strings.Join(names, ", "), strings.Join(values, ", ")); err != nil {
				return err
			}
		}
	}
	return nil
}
