package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/engine/synth"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/results/record"
)

// loopBench is a model and the ledger that runs of it are stored in.
type loopBench struct {
	b      *testing.B
	model  string
	db     string
	routed int64
}

func newLoopBench(b *testing.B, spec synth.Spec) *loopBench {
	b.Helper()
	l := &loopBench{b: b, model: benchModel(b, spec), db: filepath.Join(b.TempDir(), "loop.db")}
	m, err := model.Open(l.model)
	if err != nil {
		b.Fatal(err)
	}
	l.routed = m.RoutedBytes()
	return l
}

// knobs are what every run of the benchmark fixes: bits of stock unrepacked
// weights, a cache of a share of the experts, tokens that do not fall into a loop.
func (l *loopBench) knobs(share float64, seed int) []string {
	return []string{
		"-m", l.model, "-p", "Once upon a time", "-n", "96", "-c", "512", "--moe-stream", "--no-repack",
		"--cache-mb", strconv.FormatInt(int64(share*float64(l.routed))>>20, 10), "--random-tokens", strconv.Itoa(seed),
	}
}

// run plans and runs, and stores the run if it may.
func (l *loopBench) run(share float64, seed int, more ...string) record.Run {
	l.b.Helper()
	dropCache(l.b, l.model)
	args := append([]string{"run", "--auto", "--json", "--db", l.db}, l.knobs(share, seed)...)
	var none *memoryGroup
	raw := output(l.b, none.command(program(l.b, "bmoe"), append(args, more...)...))
	var r record.Run
	if err := json.Unmarshal(raw, &r); err != nil {
		l.b.Fatal(err)
	}
	keepDocument(l.b, fmt.Sprintf("loop-%s-%.0f-%d.json", r.Model.ID[:8], 100*share, seed), raw)
	if r.Prediction == nil || !r.Prediction.DecodeSPerToken.Known {
		l.b.Fatalf("no price: %+v", r.Prediction)
	}
	return r
}

// plan is a plan with a ledger of its own.
func (l *loopBench) plan(db string, args ...string) planner.Plan {
	l.b.Helper()
	var none *memoryGroup
	full := append([]string{"plan", "--json", "-m", l.model, "--db", filepath.Join(filepath.Dir(l.db), db)}, args...)
	var p planner.Plan
	if err := json.Unmarshal(output(l.b, none.command(program(l.b, "bmoe"), full...)), &p); err != nil {
		l.b.Fatal(err)
	}
	return p
}

// loopScore collects how predictions did.
type loopScore struct {
	name                   string
	times, hits            []float64 // absolute errors: ln of seconds, hit rate
	inTime, inHits, stated int
}

func (s *loopScore) add(p *planner.Prediction, m *record.Measured) {
	t, h := p.DecodeSPerToken, p.HitRate
	s.times = append(s.times, math.Abs(math.Log(m.DecodeSPerToken/t.Point)))
	s.hits = append(s.hits, math.Abs(m.HitRate-h.Point))
	s.stated++
	if t.Lo <= m.DecodeSPerToken && m.DecodeSPerToken <= t.Hi {
		s.inTime++
	}
	if h.Lo <= m.HitRate && m.HitRate <= h.Hi {
		s.inHits++
	}
}

func (s *loopScore) print() {
	ci := analysis.ClopperPearson(s.inTime, s.stated, 0.95)
	fmt.Printf("| %s | %d | %.3f | %.3f | %d of %d (%.0f to %.0f %%) | %d of %d |\n", s.name, len(s.times), median(s.times), median(s.hits),
		s.inTime, s.stated, 100*ci.Lo, 100*ci.Hi, s.inHits, s.stated)
}

// BenchmarkLoop trains on runs with caches of 15 and 50 % of the experts and
// predicts runs with 25, 35 and 70 %, whose tokens it has not seen; none of them
// is recorded, so that no prediction knows another. Each is also predicted
// without a ledger, the loop off, and judged against the same measurement.
func BenchmarkLoop(b *testing.B) {
	spec := synth.Default()
	spec.Embd, spec.FF, spec.Skew = 1536, 512, 1
	l := newLoopBench(b, spec)
	for seed, share := range []float64{0.15, 0.50, 0.15, 0.50} {
		l.run(share, seed+1)
	}
	on, off := loopScore{name: "loop on"}, loopScore{name: "loop off"}
	fmt.Printf("\n| cache | tokens | measured ms | loop on: ms, 90 %% interval | loop off | measured hits | loop on: hits, 90 %% interval | loop off |\n|--:|--:|--:|:--|--:|--:|:--|--:|\n")
	for seed := 11; seed <= 14; seed++ {
		for _, share := range []float64{0.25, 0.35, 0.70} {
			alone := l.plan("none.db", l.knobs(share, seed)...)
			r := l.run(share, seed, "--no-record")
			on.add(&r.Prediction.Prediction, &r.Measured)
			off.add(&alone.Prediction, &r.Measured)
			t, h, m := r.Prediction.DecodeSPerToken, r.Prediction.HitRate, &r.Measured
			fmt.Printf("| %.0f %% | %d | %.1f | %.1f (%.1f to %.1f) | %.1f | %.3f | %.3f (%.3f to %.3f) | %.3f |\n", 100*share, seed, m.DecodeSPerToken*1e3,
				t.Point*1e3, t.Lo*1e3, t.Hi*1e3, alone.Prediction.DecodeSPerToken.Point*1e3, m.HitRate, h.Point, h.Lo, h.Hi, alone.Prediction.HitRate.Point)
		}
	}
	fmt.Printf("\n| | runs | median abs ln(measured/predicted) of s/token | median abs error of the hit rate | s/token in its 90 %% interval | hit rate in its own |\n|:--|--:|--:|--:|--:|--:|\n")
	on.print()
	off.print()
	b.ReportMetric(median(on.times), "ln-error")
	b.ReportMetric(median(on.hits), "hit-error")
	b.ReportMetric(100*float64(on.inTime)/float64(on.stated), "%-covered")
	b.ReportMetric(median(off.times), "ln-error-off")
}

// BenchmarkLoopNewModels runs five new models four times each, planned each
// time with what the runs before have left in the ledger.
func BenchmarkLoopNewModels(b *testing.B) {
	shapes := []func(*synth.Spec){
		func(s *synth.Spec) { s.Skew = 0 },
		func(s *synth.Spec) { s.Skew, s.Experts, s.Used = 1, 32, 4 },
		func(s *synth.Spec) { s.Skew, s.Layers, s.Embd = 2, 24, 1024 },
		func(s *synth.Spec) { s.Skew, s.Experts, s.FF, s.Arch = 0.6, 128, 256, "olmoe" },
		func(s *synth.Spec) { s.Skew, s.Arch, s.Type = 1.5, "qwen2moe", "q8_0" },
	}
	var first, fourth []float64
	fmt.Printf("\n| model | run 1: predicted, measured ms | error | run 4: predicted, measured ms | error |\n|:--|--:|--:|--:|--:|\n")
	for i, change := range shapes {
		spec := synth.Default()
		spec.Embd, spec.Seed = 1024, uint64(i+1)
		change(&spec)
		l := newLoopBench(b, spec)
		var e [4]float64
		var text [4]string
		for n := range e {
			r := l.run(0.3, n+1)
			p, m := r.Prediction.DecodeSPerToken.Point, r.Measured.DecodeSPerToken
			e[n] = math.Abs(math.Log(m / p))
			text[n] = fmt.Sprintf("%.1f, %.1f", p*1e3, m*1e3)
		}
		fmt.Printf("| %s %dx%d top %d %s skew %g | %s | %.3f | %s | %.3f |\n", spec.Arch, spec.Layers, spec.Experts, spec.Used, spec.Type, spec.Skew, text[0], e[0], text[3], e[3])
		first, fourth = append(first, e[0]), append(fourth, e[3])
		if err := os.Remove(l.model); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(median(first), "ln-error-first")
	b.ReportMetric(median(fourth), "ln-error-fourth")
}
