package engine

import (
	"github.com/bmoe/bmoe/engine/internal/gguf"
	"github.com/bmoe/bmoe/engine/trace"
)

// maxLoggedPicks bounds the memory of a session's routing: a long run keeps its
// first picks, 4 MiB of them.
const maxLoggedPicks = 2 << 20

// routeLog keeps which experts were picked, two bytes a pick: enough to compute
// the hit rate of any policy at any cache size after the run, for a copy of a
// few bytes per layer during it.
type routeLog struct {
	header trace.Header
	graphs []loggedGraph
	ids    []uint16
	now    loggedGraph
	full   bool
}

// loggedGraph is one layer's share of one graph.
type loggedGraph struct {
	turn, step, layer, used, tokens int32
	prompt                          bool
}

// traceHeader describes the model to a routing trace.
func traceHeader(m *gguf.Model) trace.Header {
	h := trace.Header{Model: m.Path, Arch: m.Arch, Experts: m.Experts, Used: m.ExpertsUsed, Layers: make([]trace.Layer, m.Layers)}
	for i := range m.ExpertTensors {
		e := &m.ExpertTensors[i]
		h.Layers[e.Layer].ExpertBytes += e.SliceBytes
	}
	return h
}

func newRouteLog(m *gguf.Model) *routeLog {
	if m.Experts > 1<<16 {
		return &routeLog{full: true}
	}
	return &routeLog{header: traceHeader(m), ids: make([]uint16, 0, 1<<16)}
}

func (l *routeLog) begin(turn int, prompt bool, step int) {
	if l != nil {
		l.now = loggedGraph{turn: int32(turn), step: int32(step), prompt: prompt}
	}
}

func (l *routeLog) record(layer int, ids []int32, used, tokens int) {
	if l.full || len(l.ids)+len(ids) > maxLoggedPicks {
		l.full = true
		return
	}
	g := l.now
	g.layer, g.used, g.tokens = int32(layer), int32(used), int32(tokens)
	l.graphs = append(l.graphs, g)
	for _, e := range ids {
		l.ids = append(l.ids, uint16(e))
	}
}

// Routing is what the session's routers picked so far, as a trace; nil for a
// resident model. Of a very long session it holds the beginning.
func (s *Session) Routing() *trace.Trace {
	l := s.log
	if l == nil || len(l.graphs) == 0 {
		return nil
	}
	t := &trace.Trace{Header: l.header, Picks: make([]trace.Pick, 0, len(l.ids))}
	at := 0
	for _, g := range l.graphs {
		p := trace.Pick{Turn: g.turn, Phase: trace.Decode, Layer: g.layer, Weight: trace.NoWeight}
		if g.prompt {
			p.Phase = trace.Prompt
		}
		for i := range g.tokens * g.used {
			p.Step, p.Slot, p.Expert = g.step+i/g.used, i%g.used, int32(l.ids[at])
			t.Picks = append(t.Picks, p)
			at++
		}
	}
	return t
}
