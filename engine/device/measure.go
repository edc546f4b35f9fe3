package device

import (
	"context"
	"math"
	"slices"

	"github.com/bmoe/bmoe/engine/internal/llama"
)

const (
	compareTokens = 4 // of the wide result that are compared
	copyBytes     = 32 << 20
)

// measureHost times the CPU backend, plain and repacked, and a copy.
func measureHost(ctx context.Context, r *Report, s Spec) error {
	m, err := llama.NewMatmul(r.Info.Name, s.shape(), s.Threads)
	if err != nil {
		return err
	}
	defer m.Close()
	r.Narrow, r.Wide = pair(ctx, m, s, r.Why, "", reference)
	best := math.Inf(1)
	for range 3 {
		best = min(best, m.CopySeconds(copyBytes))
	}
	r.CopyRate = 1 / best
	seconds, ok := timeRepack(m)
	if !ok {
		r.Why["narrow-repack"] = "the CPU backend has no other layout for this type"
		r.Why["wide-repack"] = r.Why["narrow-repack"]
		return ctx.Err()
	}
	r.RepackRate = float64(int64(s.experts())*s.Shape.Slice) / seconds
	r.NarrowRepack, r.WideRepack = pair(ctx, m, s, r.Why, "-repack", reference)
	return ctx.Err()
}

// measureDevice times a device and compares it with the CPU backend, which
// computes the same noise in this process.
func measureDevice(ctx context.Context, r *Report, host string, s Spec) error {
	h, err := llama.NewMatmul(host, s.shape(), s.Threads)
	if err != nil {
		return err
	}
	defer h.Close()
	m, err := llama.NewMatmul(r.Info.Name, s.shape(), s.Threads)
	if err != nil {
		return err
	}
	defer m.Close()
	r.Narrow, r.Wide = pair(ctx, m, s, r.Why, "", func(_ *llama.MatmulGraph, nodes, tokens, used, of, compare int) ([]float32, error) {
		g, err := h.Graph(nodes, tokens, used, of)
		if err != nil {
			return nil, err
		}
		defer g.Close()
		if _, err := g.Run(); err != nil {
			return nil, err
		}
		return g.Result(compare), nil
	})
	return ctx.Err()
}

// truth is what a graph's result is compared with.
type truth func(g *llama.MatmulGraph, nodes, tokens, used, of, compare int) ([]float32, error)

func reference(g *llama.MatmulGraph, _, _, _, _, compare int) ([]float32, error) {
	return g.Reference(compare), nil
}

// pair takes the one-token and the wide rate. What cannot be taken is nil and
// its reason noted.
func pair(ctx context.Context, m *llama.Matmul, s Spec, why map[string]string, suffix string, want truth) (narrow, wide *Rate) {
	n, used := s.experts(), s.Shape.Used
	narrow, err := rate(ctx, m, n/used, 1, used, n, float64(int64(n)*s.Shape.Slice), want)
	if err != nil {
		why["narrow"+suffix] = err.Error()
	}
	wideUsed, of := s.wide()
	wide, err = rate(ctx, m, 1, WideTokens, wideUsed, of, float64(int64(WideTokens*wideUsed)*s.Shape.Slice), want)
	if err != nil {
		why["wide"+suffix] = err.Error()
	}
	return narrow, wide
}

// rate times passes until there are enough, and compares the result.
func rate(ctx context.Context, m *llama.Matmul, nodes, tokens, used, of int, bytes float64, want truth) (*Rate, error) {
	g, err := m.Graph(nodes, tokens, used, of)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	if _, err := g.Run(); err != nil { // warm-up: pages, threads, clocks
		return nil, err
	}
	var times []float64
	for total := 0.0; (len(times) < repeats || total < repeatFor) && len(times) < repeatMost; {
		t, err := g.Run()
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		times, total = append(times, t), total+t
	}
	compare := min(tokens, compareTokens)
	expect, err := want(g, nodes, tokens, used, of, compare)
	if err != nil {
		return nil, err
	}
	slices.Sort(times)
	mid := times[len(times)/2]
	// The spread is of the middle half: a scheduler's hiccup is no property of
	// the memory, and a median does not see it either.
	lo, hi := times[len(times)/4], times[len(times)*3/4]
	return &Rate{BytesPerS: bytes / mid, Spread: (hi - lo) / mid, NMSE: NMSE(expect, g.Result(compare))}, nil
}

// NMSE is the normalised mean squared error of got against want, as
// llama.cpp's own backend tests compute it. It is 1 or more for nonsense, and
// infinite for what is no number.
func NMSE(want, got []float32) float64 {
	if len(want) != len(got) || len(want) == 0 {
		return math.Inf(1)
	}
	var diff, norm float64
	for i := range want {
		d := float64(want[i]) - float64(got[i])
		diff += d * d
		norm += float64(want[i]) * float64(want[i])
	}
	if norm == 0 || math.IsNaN(diff) || math.IsInf(diff, 0) {
		return math.Inf(1)
	}
	return diff / norm
}
