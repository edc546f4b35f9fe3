package engine

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/bmoe/bmoe/engine/internal/gguf"
	"github.com/bmoe/bmoe/engine/trace"
)

// tap writes the routing of every graph to a trace file. A nil tap does
// nothing.
type tap struct {
	file  *os.File
	w     *trace.Writer
	bytes []int64 // one expert of each layer
	pick  trace.Pick
	seen  []bool // experts of the batch whose bytes have been charged
}

func openTap(path string, m *gguf.Model) (*tap, error) {
	// A pipe that nobody reads is an error, not something to wait for.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--route-trace: %w; give a file in a folder that can be written to", err)
	}
	h := traceHeader(m)
	t := &tap{file: f, bytes: make([]int64, m.Layers), seen: make([]bool, m.Experts)}
	for l := range h.Layers {
		t.bytes[l] = h.Layers[l].ExpertBytes
	}
	t.pick.Weight = trace.NoWeight
	t.w, err = trace.NewWriter(f, h)
	return t, err
}

// begin says where the next graph stands.
func (t *tap) begin(turn int, prompt bool, step int) {
	if t == nil {
		return
	}
	t.pick.Turn, t.pick.Step, t.pick.Phase = int32(turn), int32(step), trace.Decode
	if prompt {
		t.pick.Phase = trace.Prompt
	}
}

// record writes one layer's routing.
func (t *tap) record(layer int, ids []int32, used int, resident func(int32) bool) {
	if t == nil {
		return
	}
	first := t.pick.Step
	clear(t.seen)
	for i, e := range ids {
		p := t.pick
		p.Step, p.Layer, p.Slot, p.Expert = first+int32(i/used), int32(layer), int32(i%used), e
		p.Hit, p.Bytes = resident(e), 0
		if !p.Hit && !t.seen[e] {
			p.Bytes = t.bytes[layer]
		}
		t.seen[e] = true
		t.w.Pick(&p)
	}
}

func (t *tap) close() error {
	if t == nil {
		return nil
	}
	if err := errors.Join(t.w.Flush(), t.file.Close()); err != nil {
		return fmt.Errorf("--route-trace: the trace is not whole: %w", err)
	}
	return nil
}
