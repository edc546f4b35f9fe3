package device

import (
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
// fastest of many passes is one of those even on a busy machine.
const (
	fewNodes   = 64
	tinyPasses = 40
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
	best := 0.0
	for pass := range tinyPasses { // the first warms up
		t, err := g.Run()
		if err != nil {
			return 0
		}
		if pass == 1 || (pass > 1 && t < best) {
			best = t
		}
		if t > passMost {
			break
		}
	}
	return best
}
