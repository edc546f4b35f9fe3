package exchange

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"golang.org/x/perf/benchfmt"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func sample() *Ledger {
	at := time.Date(2026, 3, 31, 23, 59, 0, 0, time.UTC)
	c := config.Default()
	c.MoeStream, c.CacheMB, c.IOThreads = true, 256, 4
	run := record.StoredRun{ExperimentID: "e123456789", Slot: record.Slot{Index: 1, Block: 0, Pos: 1, Arm: "4"}, Attempt: 1}
	run.Run = record.Run{
		RunID: "r123456789", State: record.StateDone, StartedAt: at,
		Machine: record.Machine{ID: "0123456789abcdef", OS: "linux", Arch: "amd64", CPU: "=cmd|' /C calc'!A0", Cores: 2, RAMBytes: 8 << 30},
		Build:   record.Build{Commit: "abcdef0123456", LlamaCPP: "v0.4.0"},
		Model:   record.Model{ID: "m123456789", Name: "tiny.gguf", Arch: "qwen3moe", Quant: "q8_0", Bytes: 1 << 30},
		Config:  c, TokenNS: []int64{5e7, 6e7}, TokenWaitNS: []int64{1e7},
		Prediction: &record.Prediction{MadeAt: at.Add(-time.Minute), Prediction: planner.Prediction{DecodeSPerToken: planner.Estimate{Known: true, Point: 0.05, Lo: 0.04, Hi: 0.06}}},
		Measured:   record.Measured{DecodeSPerToken: 0.055, PrefillTokensPerS: 160, HitRate: 0, BytesPerToken: 31e6, DecodeTokens: 2, PromptTokens: 12},
	}
	run.Run.Stats.Lookups = 10
	failed := run
	failed.Slot.Index, failed.Slot.Arm = 0, "1"
	failed.Run.RunID, failed.Run.State, failed.Run.Measured, failed.Run.TokenNS, failed.Run.Prediction = "r2", record.StateKilled, record.Measured{}, nil, nil
	failed.Run.Stats.Lookups = 0
	failed.Run.StartedAt = at.Add(2 * time.Minute) // another month
	return &Ledger{
		Runs: []record.StoredRun{run, failed},
		Experiments: []record.Experiment{{
			ID: "e123456789", Lever: "io-threads", Kind: "sweep", Metric: "decode_s_per_token", RegisteredAt: at,
			Machine: run.Run.Machine, Model: run.Run.Model,
		}},
		Verdicts: []record.Verdict{{ID: "v1", ExperimentID: "e123456789", Method: "m/1", Comparisons: []record.Comparison{{Arm: "4", Baseline: "1", Pairs: 6, Effect: 0.2, Lo: 0.1, Hi: 0.3, Level: 0.969, Verdict: "better"}}}},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestTextFormats(t *testing.T) {
	for name, write := range map[string]func(b *bytes.Buffer) error{
		"runs.csv":          func(b *bytes.Buffer) error { return CSV(b, sample()) },
		"llama-bench.jsonl": func(b *bytes.Buffer) error { return LlamaBenchJSONL(b, sample()) },
		"llama-bench.sql":   func(b *bytes.Buffer) error { return LlamaBenchSQL(b, sample()) },
		"runs.bench":        func(b *bytes.Buffer) error { return Benchfmt(b, sample()) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		golden(t, name, b.Bytes())
	}
}

func TestJSONLComesBack(t *testing.T) {
	var b bytes.Buffer
	l := sample()
	if err := JSONL(&b, l); err != nil {
		t.Fatal(err)
	}
	var back Ledger
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		var kind struct{ Entity string }
		if err := json.Unmarshal([]byte(line), &kind); err != nil {
			t.Fatal(err)
		}
		switch kind.Entity {
		case "experiment":
			back.Experiments = append(back.Experiments, parse[record.Experiment](t, line))
		case "run":
			back.Runs = append(back.Runs, parse[record.StoredRun](t, line))
		case "verdict":
			back.Verdicts = append(back.Verdicts, parse[record.Verdict](t, line))
		default:
			t.Errorf("entity %q", kind.Entity)
		}
	}
	if diff := cmp.Diff(l, &back); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func parse[T any](t *testing.T, line string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCSVIsRectangular(t *testing.T) {
	var b bytes.Buffer
	if err := CSV(&b, sample()); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	for column, want := range map[string]string{
		"decode_s_per_token": "0.055", "hit_rate": "0", "lever": "io-threads", "model_name": "tiny.gguf", "cpu": "'=cmd|' /C calc'!A0",
	} {
		if got := rows[1][at[column]]; got != want {
			t.Errorf("%s is %q, want %q", column, got, want)
		}
	}
	if got := rows[2][at["decode_s_per_token"]] + rows[2][at["hit_rate"]]; got != "" {
		t.Errorf("a run that measured nothing has %q", got)
	}
}

func TestBenchfmtIsReadByItsOwnReader(t *testing.T) {
	var b bytes.Buffer
	if err := Benchfmt(&b, sample()); err != nil {
		t.Fatal(err)
	}
	r := benchfmt.NewReader(&b, "export")
	results := 0
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			results++
			if v, ok := rec.Value("sec/token"); !ok || v != 0.055 {
				t.Errorf("sec/token %v, %v", v, ok)
			}
			if rec.GetConfig("machine") != "0123456789ab" || !strings.Contains(string(rec.Name), "/io-threads=4") {
				t.Errorf("name %s, config %v", rec.Name, rec.Config)
			}
		case *benchfmt.SyntaxError:
			t.Error(rec)
		}
	}
	if results != 1 || r.Err() != nil {
		t.Errorf("%d results, %v", results, r.Err())
	}
}

func TestLlamaBenchRoundTrip(t *testing.T) {
	var b bytes.Buffer
	if err := LlamaBenchJSONL(&b, sample()); err != nil {
		t.Fatal(err)
	}
	runs, notes, err := ReadLlamaBench(&b, Known{})
	if err != nil || len(notes) != 0 || len(runs) != 2 {
		t.Fatalf("%d runs, %v, %v", len(runs), notes, err)
	}
	if m := runs[0].Measured; m.PromptTokens != 12 || diff(m.PrefillTokensPerS, 160) > 1e-6 {
		t.Errorf("prompt: %+v", m)
	}
	if m := runs[1].Measured; m.DecodeTokens != 2 || diff(m.DecodeSPerToken, 0.055) > 1e-6 {
		t.Errorf("generation: %+v", m)
	}
	if p := runs[1].Peer; p.Tool != "llama-bench" || p.Test != "tg2" || p.Row["model_filename"] != nil {
		t.Errorf("peer: %+v", p)
	}
}

func diff(a, b float64) float64 { return max(a-b, b-a) / b }

func TestReadLlamaBench(t *testing.T) {
	row := func(over map[string]any) string {
		m := map[string]any{
			"build_commit": "80fb11a", "cpu_info": "Some CPU", "model_filename": "/home/bob/m.gguf", "model_type": "qwen3moe 30B.A3B Q4_0",
			"model_size": 1 << 30, "n_threads": 2, "n_ubatch": 512, "load_mode": "mmap", "type_k": "f16", "type_v": "f16", "n_prompt": 0, "n_gen": 128,
			"n_depth": 4096, "test_time": "2026-03-01T10:00:00Z", "avg_ns": 1e9, "avg_ts": 128.0, "stddev_ts": 0.5, "samples_ns": []int64{1e9, 1e9},
		}
		for k, v := range over {
			m[k] = v
		}
		raw, _ := json.Marshal(m)
		return string(raw)
	}
	runs, notes, err := ReadLlamaBench(strings.NewReader(row(nil)+"\n\n"+row(map[string]any{"n_prompt": 512})+"\n"), Known{})
	if err != nil || len(runs) != 1 || len(notes) != 1 {
		t.Fatalf("%v, %v, %v", runs, notes, err)
	}
	r := runs[0]
	if r.Peer.Test != "tg128 @ d4096" || r.Peer.Repetitions != 2 || r.Config.Threads != 2 || r.Measured.DecodeSPerToken != 1.0/128 || r.Model.Name != "m.gguf" {
		t.Errorf("run: %+v", r)
	}
	known := Known{Machine: &record.Machine{ID: "here", CPU: "Ours"}, Model: &record.Model{ID: "known"}}
	if runs, _, _ := ReadLlamaBench(strings.NewReader(row(nil)), known); runs[0].Machine.ID != "here" || runs[0].Model.ID != "known" {
		t.Errorf("known machine and model are not used: %+v", runs[0])
	}
	for name, text := range map[string]string{
		"not JSON": "| model | size |", "other JSON": `{"a": 1}`, "negative": row(map[string]any{"n_gen": -1}),
		"no rate": row(map[string]any{"avg_ts": 0}), "no time": row(map[string]any{"test_time": "0001-01-01T00:00:00Z"}),
		"huge": row(map[string]any{"n_gen": 1 << 50}), "long line": strings.Repeat("x", maxLine+1), "array": "[]",
	} {
		runs, _, err := ReadLlamaBench(strings.NewReader(row(nil)+"\n"+text+"\n"), Known{})
		if err == nil || runs != nil {
			t.Errorf("%s is accepted: %v", name, runs)
		} else if name != "long line" && !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%s: %v names no line", name, err)
		}
	}
}

func TestParquet(t *testing.T) {
	dir := t.TempDir()
	l := sample()
	files, err := Parquet(dir, l)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		rel, _ := filepath.Rel(dir, f)
		names = append(names, rel)
	}
	want := []string{
		"runs/machine=0123456789ab/month=2026-03/runs.parquet", "runs/machine=0123456789ab/month=2026-04/runs.parquet",
		"tokens/machine=0123456789ab/month=2026-03/tokens.parquet", "comparisons/machine=0123456789ab/month=2026-03/comparisons.parquet",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	rows, err := parquet.ReadFile[Row](files[0])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Row{NewRow(l.Runs[0], l.levers())}, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	before, _ := os.ReadFile(files[0])
	if _, err := Parquet(dir, l); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(files[0]); !bytes.Equal(before, after) {
		t.Error("exporting again changed a file")
	}
}

func FuzzReadLlamaBench(f *testing.F) {
	var b bytes.Buffer
	if err := LlamaBenchJSONL(&b, sample()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"n_gen":1,"avg_ts":1e-320,"test_time":"9999-12-31T23:59:59Z","samples_ns":[9223372036854775807,9223372036854775807]}`))
	f.Add([]byte(`{"n_gen":1,"avg_ts":1,"test_time":"2026-01-01T00:00:00-23:59","n_threads":-5,"load_mode":"dio"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		runs, _, err := ReadLlamaBench(bytes.NewReader(data), Known{})
		if err != nil {
			return
		}
		for _, r := range runs {
			if r.ContentID() == "" {
				t.Errorf("a run that cannot be stored: %+v", r)
			}
			if m := r.Measured; m.DecodeSPerToken <= 0 && m.PrefillTokensPerS <= 0 {
				t.Errorf("a run that measured nothing: %+v", m)
			}
		}
	})
}
