package device

import (
	"math"
	"time"

	"github.com/bmoe/bmoe/engine/internal/llama"
)

// timeRepack lays the weights out anew and says how long one thread took; false
// when there is no other layout for them.
func timeRepack(m *llama.Matmul) (seconds float64, ok bool) {
	start := time.Now()
	ok = m.Repack()
	return time.Since(start).Seconds(), ok
}

// repacks says for which shapes the CPU backend has another layout.
func repacks(classes []Shape) []bool {
	out := make([]bool, len(classes))
	for i, c := range classes {
		if layout := llama.NewRepack(c.Type, c.Cols, c.Rows); layout != nil {
			out[i] = true
			layout.Close()
		}
	}
	return out
}

// A pass of few nodes is over before a scheduler takes a thread away, and the
// fastest of many passes is one of those even on a busy machine. Threads that
// share a processor hand it to each other at every barrier, a thousand times
// slower, for as long as they stay there: a rest lets the scheduler part them.
const (
	fewNodes   = 64
	tinyPasses = 40
	tinySlow   = 20e-3 // seconds from which a pass is such a one
	tinyRests  = 5     // at most
)

// perNode is the time of a graph node beside its work: a barrier of the
// threads and the dispatch. Zero when it could not be taken.
func perNode(name string, threads int) float64 {
	return tinyGraph(name, threads, fewNodes) / fewNodes
}

// crossing is the time of going to a device or back: half of what it takes to
// have next to nothing computed there and to read the answer.
func crossing(name string, threads int) float64 { return tinyGraph(name, threads, 1) / 2 }

// tinyGraph is the fastest of many passes over matmuls that compute next to
// nothing, seconds; zero when none could be taken.
func tinyGraph(name string, threads, nodes int) float64 {
	const f32 = 0
	tiny := llama.MatmulShape{Type: f32, Cols: 32, Rows: 32, Experts: 2, Used: 1}
	m, err := llama.NewMatmul(name, tiny, threads)
	if err != nil {
		return 0
	}
	defer m.Close()
	g, err := m.Graph(nodes, 1, 1, 2)
	if err != nil {
		return 0
	}
	defer g.Close()
	if _, err := g.Run(); err != nil { // warms up
		return 0
	}
	return fastest(g.Run, time.Sleep)
}

// fastest runs passes and returns the time of the fastest; zero when one fails.
// It rests after a slow one, and gives up after as many as it will not wait for.
func fastest(run func() (float64, error), rest func(time.Duration)) float64 {
	best, rests := math.Inf(1), 0
	for range tinyPasses {
		t, err := run()
		if err != nil {
			return 0
		}
		best = min(best, t)
		if t < tinySlow {
			continue
		}
		if rests++; rests > tinyRests {
			break
		}
		rest(windowRest)
	}
	return best
}
