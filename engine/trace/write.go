package trace

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

const columns = "turn,phase,step,layer,slot,expert,weight,residency,expert_bytes"

// Writer writes a trace row by row through a buffer. Rows do not allocate. The
// first error sticks: Pick goes on doing nothing and Flush returns it.
type Writer struct {
	w   *bufio.Writer
	row []byte
	err error
}

// NewWriter writes the header and returns a writer for the rows. Of the model
// only the base name is kept: a trace is for sharing.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	t := &Writer{w: bufio.NewWriterSize(w, 1<<16), row: make([]byte, 0, 128)}
	model := h.Model
	if model != "" {
		model = strings.Join(strings.Fields(filepath.Base(model)), "_") // the header splits at spaces
	}
	fmt.Fprintf(t.w, "# route_trace v1\n# model=%s arch=%s n_layer=%d n_expert=%d n_expert_used=%d\n", model, h.Arch, len(h.Layers), h.Experts, h.Used)
	for l, layer := range h.Layers {
		fmt.Fprintf(t.w, "# layer=%d expert_bytes=%d dense_bytes=%d\n", l, layer.ExpertBytes, layer.DenseBytes)
	}
	_, err := t.w.WriteString(columns + "\n")
	return t, err
}

// Pick appends one row.
func (t *Writer) Pick(p *Pick) {
	if t.err != nil {
		return
	}
	b := t.row[:0]
	for _, v := range [...]int32{p.Turn, p.Phase, p.Step, p.Layer, p.Slot, p.Expert} {
		b = append(strconv.AppendInt(b, int64(v), 10), ',')
	}
	if w := float64(p.Weight); !math.IsNaN(w) {
		b = strconv.AppendFloat(b, w, 'g', 6, 32)
	}
	if p.Hit {
		b = append(b, ",1,"...)
	} else {
		b = append(b, ",0,"...)
	}
	b = append(strconv.AppendInt(b, p.Bytes, 10), '\n')
	t.row = b
	_, t.err = t.w.Write(b)
}

// Flush writes what is buffered and returns the first error of all.
func (t *Writer) Flush() error {
	if err := t.w.Flush(); t.err == nil {
		t.err = err
	}
	return t.err
}
