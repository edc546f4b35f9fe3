package main

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/bmoe/bmoe/engine/cachepolicy"
	"github.com/bmoe/bmoe/engine/synth"
	"github.com/bmoe/bmoe/results/record"
)

// hitNS is what a lookup cost that hit, in nanoseconds: all the hook's own time
// in the median of the tokens that waited for no read.
func hitNS(r *record.Run) float64 {
	var hook []float64
	for i, ns := range r.TokenManageNS {
		if i > len(r.TokenManageNS)/2 && r.TokenWaitNS[i] == 0 {
			hook = append(hook, float64(ns))
		}
	}
	return median(hook) * float64(r.Stats.DecodeTokens) / float64(r.Stats.DecodeLookups)
}

// lookupNS is what a decoding run's lookups cost on average, victims included,
// but for handing reads to the lanes.
func lookupNS(r *record.Run) float64 {
	var hook int64
	for _, ns := range r.TokenManageNS {
		hook += ns
	}
	return (float64(hook) - 1e9*r.Stats.SubmitS) / float64(r.Stats.DecodeLookups)
}

// BenchmarkPolicies streams one model under every cache policy, interleaved, with
// caches of a tenth and a quarter of its experts, so that the drive is what limits
// it: whether tokens a second follow the hit rate, and what a lookup costs.
func BenchmarkPolicies(b *testing.B) {
	spec := synth.Default()
	spec.Type, spec.Embd, spec.FF, spec.Skew = "q8_0", 1024, 512, 1
	model := benchModel(b, spec)
	type cell struct{ rate, hits, lookup []float64 }
	var rows [][2]string
	for _, mb := range []int{150, 380} {
		cells := map[string]*cell{}
		names := cachepolicy.Names()
		for round := range 4 {
			for i := range names {
				name := names[(i+round)%len(names)]
				r := ours(b, nil, model, "--moe-stream", "--cache-policy", name, "--cache-mb", strconv.Itoa(mb), "--dense-weights", "anon", "-n", "128", "-c", "512")
				if cells[name] == nil {
					cells[name] = &cell{}
				}
				c := cells[name]
				c.rate, c.hits, c.lookup = append(c.rate, 1/r.Measured.DecodeSPerToken), append(c.hits, 100*r.Measured.HitRate), append(c.lookup, lookupNS(&r))
			}
		}
		for _, name := range names {
			c := cells[name]
			rows = append(rows, [2]string{
				fmt.Sprintf("%s, cache %d MiB", name, mb),
				fmt.Sprintf("%.1f at %.1f %% hits; %.2f us a lookup", median(c.rate), median(c.hits), median(c.lookup)/1e3),
			})
			b.ReportMetric(median(c.rate), fmt.Sprintf("t/s-%s-%d", name, mb))
			b.ReportMetric(median(c.lookup), fmt.Sprintf("ns-%s-%d", name, mb))
		}
	}
	table("Cache policies, reads limiting", rows)
}
