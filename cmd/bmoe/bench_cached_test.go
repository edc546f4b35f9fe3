package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/bmoe/bmoe/engine/synth"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// steady is the rate of a run's second half, in tokens a second, from the
// median of the tokens that waited for no read: the first half reads nearly all
// that is ever needed, the routers' rarest choices come later.
func steady(b *testing.B, r *record.Run) float64 {
	var half []int64
	for i := len(r.TokenNS) / 2; i < len(r.TokenNS); i++ {
		if len(r.TokenWaitNS) == 0 || r.TokenWaitNS[i] == 0 {
			half = append(half, r.TokenNS[i])
		}
	}
	if len(half) < 300 {
		b.Fatalf("%d tokens without a read, 300 are wanted", len(half))
	}
	slices.Sort(half)
	return 1e9 / float64(half[len(half)/2])
}

// pairs are two arms' rates, measured in turn.
type pairs struct{ a, b []float64 }

// inTurn runs two arms n times in turn, the order changing.
func inTurn(n int, a, b func() float64) (p pairs) {
	for i := range n {
		var x, y float64
		if i%2 == 0 {
			x, y = a(), b()
		} else {
			y, x = b(), a()
		}
		p.a, p.b = append(p.a, x), append(p.b, y)
	}
	return p
}

// ratio is the median of the pairs' ratios b/a.
func (p pairs) ratio() float64 {
	ratios := make([]float64, len(p.a))
	for i := range ratios {
		ratios[i] = p.b[i] / p.a[i]
	}
	return median(ratios)
}

// BenchmarkAllCached compares a stream whose every expert is cached with the
// resident model, for a growing number of experts: what streaming costs when
// nothing is read. Processes of one arm may differ by a quarter among themselves
// (where their memory lies, what the other half of the core does), hence twelve
// pairs, and beside the median the fastest of each arm.
func BenchmarkAllCached(b *testing.B) {
	for _, size := range []struct{ layers, experts int }{{16, 64}, {32, 128}, {64, 128}} {
		b.Run(strconv.Itoa(size.layers*size.experts), func(b *testing.B) {
			spec := synth.Default()
			spec.Layers, spec.Experts, spec.Embd, spec.FF, spec.Skew = size.layers, size.experts, 512, 256, 0
			allCached(b, benchModel(b, spec))
		})
	}
}

func allCached(b *testing.B, model string) {
	var hook, lookup float64
	p := inTurn(12, func() float64 {
		r := ours(b, nil, model, "--no-moe-stream", "--load-mode", "none", "-n", "640", "-c", "1024")
		return steady(b, &r)
	}, func() float64 {
		r := ours(b, nil, model, "--moe-stream", "--cache-mb", "4000", "--dense-weights", "anon", "-n", "640", "-c", "1024")
		hook, lookup = manageShare(&r), hitNS(&r)
		return steady(b, &r)
	})
	table("Everything cached, t/s of the median token, 12 pairs", [][2]string{
		{"resident", span(p.a)},
		{"streamed", span(p.b)},
		{"median of the pairs' ratios", fmt.Sprintf("%.1f %%", 100*p.ratio())},
		{"fastest to fastest", fmt.Sprintf("%.1f %%", 100*slices.Max(p.b)/slices.Max(p.a))},
		{"hook", fmt.Sprintf("%.2f %% of a token, %.2f us a lookup", 100*hook, lookup/1e3)},
	})
	b.ReportMetric(100*p.ratio(), "%-of-resident")
	b.ReportMetric(lookup, "ns/lookup")
	b.ReportMetric(100*hook, "%-hook")
}

// manageShare is the part of a steady token that the router hook takes.
func manageShare(r *record.Run) float64 {
	var manage, all int64
	for i := len(r.TokenNS) / 2; i < len(r.TokenNS); i++ {
		manage, all = manage+r.TokenManageNS[i], all+r.TokenNS[i]
	}
	return float64(manage) / float64(all)
}

// BenchmarkRepackStock compares repacked streaming, everything cached, with
// stock llama-bench as it comes, which repacks.
func BenchmarkRepackStock(b *testing.B) {
	var rows [][2]string
	for _, typ := range []string{"q4_0", "q4_k"} {
		spec := synth.Default()
		spec.Type, spec.Embd, spec.FF, spec.Skew = typ, 1024, 512, 0 // K-quants come in blocks of 256
		model := benchModel(b, spec)
		p := inTurn(4, func() float64 { return stock(b, nil, model, 256) }, func() float64 {
			r := ours(b, nil, model, "--repack", "on", "--moe-stream", "--cache-mb", "4000", "--dense-weights", "anon", "-n", "800", "-c", "1024")
			return steady(b, &r)
		})
		rows = append(rows, [2]string{typ, fmt.Sprintf("stock %.1f, streamed %.1f: %.1f %%", median(p.a), median(p.b), 100*p.ratio())})
		b.ReportMetric(100*p.ratio(), "%-of-stock-"+typ)
	}
	table("Repacked, everything cached, t/s", rows)
}

// BenchmarkRepackAuto asks whether a plan's choice of --repack is the better one
// at hit rates of about 50, 80 and 100 %. All three arms are planned, so that they
// differ in nothing else that a plan chooses.
func BenchmarkRepackAuto(b *testing.B) {
	for _, mb := range []string{"50", "165", "4000"} {
		b.Run(mb, func(b *testing.B) {
			spec := synth.Default()
			spec.Skew = 1
			repackAuto(b, benchModel(b, spec), mb)
		})
	}
}

func repackAuto(b *testing.B, model, mb string) {
	arms := []string{"on", "off", "auto"}
	rates := map[string][]float64{}
	ran := map[string]config.Config{}
	var hits float64
	for round := range 6 {
		for i := range arms {
			how := arms[(i+round)%len(arms)]
			args := []string{"--auto", "--db", filepath.Join(b.TempDir(), "none.db"), "--io-threads", "4", "--moe-stream", "--cache-mb", mb, "--dense-weights", "anon", "-n", "256", "-c", "512"}
			if how != "auto" {
				args = append(args, "--repack", how)
			}
			r := bare(b, model, args...)
			rates[how] = append(rates[how], 1/r.Measured.DecodeSPerToken)
			ran[how] = r.Config
			if how == "auto" {
				hits = r.Measured.HitRate
			}
		}
	}
	better := "on"
	if median(rates["off"]) > median(rates["on"]) {
		better = "off"
	}
	share := 100 * median(rates["auto"]) / median(rates[better])
	planned, typed := ran["auto"], ran[better]
	chosen := planned.Repack
	// Of one setting two arms tell how far runs of it differ, and nothing else.
	if len(config.Diff(&planned, &typed)) == 0 {
		chosen += ", every setting as in the better arm"
	}
	table(fmt.Sprintf("--repack on, off and planned, t/s; cache %s MiB, %.0f %% hits", mb, 100*hits), [][2]string{
		{"on", span(rates["on"])},
		{"off", span(rates["off"])},
		{"planned: " + chosen, span(rates["auto"])},
		{"planned against the better", fmt.Sprintf("%.1f %%", share)},
	})
	b.ReportMetric(share, "%-of-better")
}
