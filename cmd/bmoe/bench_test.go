package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/engine/synth"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/probes"
	"github.com/bmoe/bmoe/results/record"
)

// benchModel writes a model for a benchmark and drops it from the page cache.
func benchModel(b *testing.B, spec synth.Spec) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "model.gguf")
	if _, err := synth.Write(context.Background(), path, spec, synth.Options{}); err != nil {
		b.Fatal(err)
	}
	return path
}

// dropCache empties a file's page cache: every run starts cold.
func dropCache(b *testing.B, path string) {
	b.Helper()
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		b.Fatal(err)
	}
}

// ours runs bmoe, unrepacked unless args say otherwise, and returns its document.
func ours(b *testing.B, g *memoryGroup, model string, args ...string) record.Run {
	return runOurs(b, g, model, append([]string{"--no-repack"}, args...))
}

// bare runs bmoe with nothing pinned but what args pin.
func bare(b *testing.B, model string, args ...string) record.Run {
	return runOurs(b, nil, model, args)
}

func runOurs(b *testing.B, g *memoryGroup, model string, args []string) record.Run {
	b.Helper()
	dropCache(b, model)
	full := append([]string{"run", "-m", model, "-p", "Once upon a time", "--random-tokens", "1", "-t", "2", "--no-record", "--json"}, args...)
	var r record.Run
	if err := json.Unmarshal(output(b, g.command(program(b, "bmoe"), full...)), &r); err != nil {
		b.Fatal(err)
	}
	return r
}

// stock runs llama-bench and returns tokens a second.
func stock(b *testing.B, g *memoryGroup, model string, tokens int) float64 {
	b.Helper()
	dropCache(b, model)
	args := []string{"-m", model, "-p", "0", "-n", strconv.Itoa(tokens), "-t", "2", "-r", "1", "--no-warmup", "-o", "json"}
	var rows []struct {
		AvgTS float64 `json:"avg_ts"`
	}
	raw := output(b, g.command(program(b, "llama-bench"), args...))
	if err := json.Unmarshal(raw, &rows); err != nil || len(rows) != 1 {
		b.Fatalf("llama-bench: %v: %s", err, raw)
	}
	return rows[0].AvgTS
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// table prints a benchmark's figures as they stand in docs/streaming.md.
func table(title string, rows [][2]string) {
	fmt.Printf("\n%s\n\n| arm | t/s |\n|:--|--:|\n", title)
	for _, r := range rows {
		fmt.Printf("| %s | %s |\n", r[0], r[1])
	}
	fmt.Println()
}

func span(xs []float64) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(xs), slices.Min(xs), slices.Max(xs))
}

// BenchmarkPressure runs a model in 40 % of its size: stock llama.cpp mapped,
// the same with read-ahead off, and streamed with a cache of a quarter of the
// experts; interleaved, each from a cold page cache. The ceiling is what memory
// and drive, measured in the same round, would allow a perfect stream.
func BenchmarkPressure(b *testing.B) {
	spec := synth.Default()
	// A type the CPU backend here does not repack: llama-bench cannot be told to
	// leave weights mapped, and repacked ones are copied into memory.
	spec.Type, spec.Embd, spec.FF, spec.Skew = "q8_0", 1024, 512, 1
	model := benchModel(b, spec)
	st, err := os.Stat(model)
	if err != nil {
		b.Fatal(err)
	}
	g := limitMemory(b, st.Size()*40/100)
	quarter := strconv.FormatInt(st.Size()*9/10/4>>20, 10)
	arms := map[string][]float64{}
	add := func(name string, v float64) { arms[name] = append(arms[name], v) }
	for range 3 {
		add("stock", stock(b, g, model, 8))
		r := ours(b, g, model, "--no-moe-stream", "--mmap-advice", "random", "-n", "12")
		add("random", 1/r.Measured.DecodeSPerToken)
		before := driveRate(b, model, config.Default().IOThreads)
		r = ours(b, g, model, "--moe-stream", "--cache-mb", quarter, "--dense-weights", "anon", "-n", "64", "-c", "512")
		add("stream", 1/r.Measured.DecodeSPerToken)
		rate := (before + driveRate(b, model, r.Config.IOThreads)) / 2 // a drive drifts
		mem := ours(b, nil, model, "--no-moe-stream", "--load-mode", "none", "-n", "64", "-c", "512")
		add("drive", rate/1e9)
		manage := r.Stats.ManageS / float64(r.Stats.DecodeTokens)
		add("ceiling", 1/max(mem.Measured.DecodeSPerToken+manage, r.Measured.BytesPerToken/rate))
	}
	s, m, x, c := median(arms["stream"]), median(arms["stock"]), median(arms["random"]), median(arms["ceiling"])
	table("Memory limited to 40 % of a "+strconv.FormatInt(st.Size()>>20, 10)+" MiB model", [][2]string{
		{"stock llama-bench, mmap", span(arms["stock"])},
		{"resident, mmap, MADV_RANDOM", span(arms["random"])},
		{"streamed, cache " + quarter + " MiB", span(arms["stream"])},
		{"ceiling 1/max(t_mem+m, t_io)", span(arms["ceiling"])},
		{"drive, GB/s", span(arms["drive"])},
	})
	b.ReportMetric(s, "stream-t/s")
	b.ReportMetric(s/m, "x-stock")
	b.ReportMetric(s/x, "x-random")
	b.ReportMetric(100*s/c, "%-of-ceiling")
}

// driveRate asks the storage probe for the drive's rate at the model's slice
// size, in bytes a second.
func driveRate(b *testing.B, model string, lanes int) float64 {
	b.Helper()
	dropCache(b, model)
	p, err := probes.Probe(context.Background(), config.Config{Model: model}, probes.Options{})
	if err != nil {
		b.Fatal(err)
	}
	best := 0.0
	for _, point := range p.Storage.Curve.Value {
		if point.Lanes == lanes {
			best = max(best, point.BytesPerS)
		}
	}
	return best
}
