package device

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/bmoe/bmoe/engine/internal/llama"
)

const (
	compareTokens = 4 // of the wide result that are compared
	copyBytes     = 32 << 20
	sendBytes     = 16 << 20
)

// measureHost times the CPU backend, plain and repacked, on the shape that
// speaks for the model and then on its others, and a copy.
func measureHost(ctx context.Context, r *Report, s Spec) error {
	if err := measureMain(ctx, r, s); err != nil {
		return err
	}
	measureClasses(ctx, r, s)
	measureDense(ctx, r, s)
	return ctx.Err()
}

func measureMain(ctx context.Context, r *Report, s Spec) error {
	m, err := llama.NewMatmul(r.Info.Name, s.Shape.matmul(s.layout()), s.Threads)
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
	r.PerNode = perNode(r.Info.Name, s.Threads)
	r.Repacks = repacks(s.Classes)
	seconds, ok := timeRepack(m)
	if !ok {
		r.Why["narrow-repack"] = "the CPU backend has no other layout for this type"
		r.Why["wide-repack"] = r.Why["narrow-repack"]
		return ctx.Err()
	}
	r.RepackRate = float64(s.bytes()) / seconds
	r.NarrowRepack, r.WideRepack = pair(ctx, m, s, r.Why, "-repack", reference)
	return ctx.Err()
}

// measureDevice times a device and compares it with the CPU backend, which
// computes the same noise in this process.
func measureDevice(ctx context.Context, r *Report, host string, s Spec) error {
	h, err := llama.NewMatmul(host, s.Shape.matmul(s.layout()), s.Threads)
	if err != nil {
		return err
	}
	defer h.Close()
	m, err := llama.NewMatmul(r.Info.Name, s.Shape.matmul(s.layout()), s.Threads)
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
	r.SendRate = m.SendRate(sendBytes)
	r.Crossing = crossing(r.Info.Name, s.Threads)
	return ctx.Err()
}

// bytes is how much weight the one-token matmuls go through.
func (s Spec) bytes() int64 {
	experts, tensors := s.layout()
	return int64(experts) * int64(tensors) * s.Shape.Slice
}

// truth is what a graph's result is compared with.
type truth func(g *llama.MatmulGraph, nodes, tokens, used, of, compare int) ([]float32, error)

func reference(g *llama.MatmulGraph, _, _, _, _, compare int) ([]float32, error) {
	return g.Reference(compare), nil
}

// pair takes the one-token and the wide rate. What cannot be taken is nil and
// its reason noted.
func pair(ctx context.Context, m *llama.Matmul, s Spec, why map[string]string, suffix string, want truth) (narrow, wide *Rate) {
	experts, tensors := s.layout()
	used := s.Shape.Used
	narrow, err := rate(ctx, m, experts/used*tensors, 1, used, experts, float64(s.bytes()), want)
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

// rate times passes until there are enough, and compares the result. A machine
// that is busy, or a slow device, gets fewer matmuls a pass and fewer passes.
func rate(ctx context.Context, m *llama.Matmul, nodes, tokens, used, of int, bytes float64, want truth) (*Rate, error) {
	run, err := sized(m, nodes, tokens, used, of)
	if err != nil {
		return nil, err
	}
	defer run.g.Close()
	bytes *= float64(run.nodes) / float64(nodes)
	mid, spread, err := steady(ctx, run.g)
	if err != nil {
		return nil, err
	}
	compare := min(tokens, compareTokens)
	expect, err := want(run.g, run.nodes, tokens, used, of, compare)
	if err != nil {
		return nil, err
	}
	return &Rate{BytesPerS: bytes / mid, Spread: spread, NMSE: NMSE(expect, run.g.Result(compare))}, nil
}

const (
	agree      = 0.10                  // apart up to which two windows show the same rate
	windowMost = 6                     // windows at most
	windowsFor = 0.4                   // seconds of passes from which two windows are enough
	windowRest = 15 * time.Millisecond // between them, so that the scheduler may move threads
)

// steady times passes in windows until the two fastest agree and returns the
// mean of their passes and how far their medians lie apart. What shares the
// machine only takes time away, and two threads on one processor take ten times
// as long for as long as they stay there: a window may be slow and even. Within
// the two the mean counts, as a run's tokens are counted: the interruptions a
// pass meets are those a token meets.
func steady(ctx context.Context, g interface{ Run() (float64, error) }) (mean, spread float64, err error) {
	best, second := window{median: math.Inf(1)}, window{median: math.Inf(1)}
	for n, spent := 0, 0.0; n < 2 || n < windowMost && spent < windowsFor && second.median > best.median*(1+agree); n++ {
		if n > 0 {
			time.Sleep(windowRest)
		}
		w, err := takeWindow(ctx, g)
		if err != nil {
			return 0, 0, err
		}
		spent += w.total
		switch {
		case w.median < best.median:
			best, second = w, best
		case w.median < second.median:
			second = w
		}
	}
	spread = second.median/best.median - 1
	if spread > agree {
		second = best // it shows something else
	}
	return (best.total + second.total) / float64(best.passes+second.passes), spread, nil
}

// window is some passes in a row, in seconds.
type window struct {
	median, total float64
	passes        int
}

func takeWindow(ctx context.Context, g interface{ Run() (float64, error) }) (w window, err error) {
	var times []float64
	for enough(len(times), w.total) {
		t, err := g.Run()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return w, err
		}
		times, w.total = append(times, t), w.total+t
	}
	w.passes = len(times)
	w.median, _ = medianOfThirds(times)
	return w, nil
}

// enough says whether to take another pass.
func enough(passes int, total float64) bool {
	if passes < repeatLeast {
		return true
	}
	return total < repeatFor && passes < repeatMost
}

type sizedGraph struct {
	g     *llama.MatmulGraph
	nodes int
}

// sized builds the graph of as many matmuls as fit the time of a pass, judged
// by a small one that also warms the pages, the threads and the clocks up.
func sized(m *llama.Matmul, nodes, tokens, used, of int) (sizedGraph, error) {
	first := min(nodes, 2)
	g, err := m.Graph(first, tokens, used, of)
	if err != nil {
		return sizedGraph{}, err
	}
	t, err := g.Run()
	if err == nil {
		t, err = g.Run()
	}
	if err != nil {
		g.Close()
		return sizedGraph{}, err
	}
	fit := min(nodes, max(first, int(passMost/max(t/float64(first), 1e-9))))
	if fit == first {
		return sizedGraph{g, first}, nil
	}
	g.Close()
	g, err = m.Graph(fit, tokens, used, of)
	if err != nil {
		return sizedGraph{}, err
	}
	if _, err := g.Run(); err != nil {
		g.Close()
		return sizedGraph{}, err
	}
	return sizedGraph{g, fit}, nil
}

// medianOfThirds is the median of the medians of three runs of passes, and how
// far those lie apart: a single pass that a scheduler interrupted is no
// property of the memory, a third of them is.
func medianOfThirds(times []float64) (median, spread float64) {
	var mid [3]float64
	for i := range mid {
		part := slices.Clone(times[len(times)*i/3 : len(times)*(i+1)/3])
		slices.Sort(part)
		mid[i] = part[len(part)/2]
	}
	slices.Sort(mid[:])
	return mid[1], (mid[2] - mid[0]) / mid[1]
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
