package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Read parses a whole trace. The error names the line.
func Read(r io.Reader) (*Trace, error) {
	p := parser{}
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4096), 1<<16)
	for s.Scan() {
		p.line++
		if err := p.feed(s.Text()); err != nil {
			return nil, fmt.Errorf("line %d: %w", p.line, err)
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", p.line+1, err)
	}
	if !p.columns {
		return nil, fmt.Errorf("no row of column names: want %q; is this a routing trace?", columns)
	}
	return p.finish()
}

type parser struct {
	t       Trace
	line    int
	columns bool
	nLayer  int
}

func (p *parser) feed(line string) error {
	line = strings.TrimRight(line, "\r")
	switch {
	case line == "":
		return nil
	case strings.HasPrefix(line, "#"):
		return p.comment(strings.Fields(line[1:]))
	case !p.columns:
		if line != columns {
			return fmt.Errorf("column names %.60q: want %q", line, columns)
		}
		p.columns = true
		return nil
	}
	return p.row(line)
}

// comment takes key=value pairs; words and keys it does not know are left for
// later versions.
func (p *parser) comment(words []string) error {
	layer, l := -1, Layer{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			continue
		}
		var err error
		switch key {
		case "model":
			p.t.Model = value
		case "arch":
			p.t.Arch = value
		case "n_layer":
			p.nLayer, err = number(key, value, MaxLayers)
		case "n_expert":
			p.t.Experts, err = number(key, value, MaxExperts)
		case "n_expert_used":
			p.t.Used, err = number(key, value, MaxExperts)
		case "layer":
			layer, err = number(key, value, MaxLayers-1)
		case "expert_bytes":
			l.ExpertBytes, err = size(key, value)
		case "dense_bytes":
			l.DenseBytes, err = size(key, value)
		}
		if err != nil {
			return err
		}
	}
	if layer >= 0 {
		p.grow(layer)
		p.t.Layers[layer] = l
	}
	return nil
}

func (p *parser) grow(layer int) {
	for len(p.t.Layers) <= layer {
		p.t.Layers = append(p.t.Layers, Layer{})
	}
}

func number(key, value string, limit int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > limit {
		return 0, fmt.Errorf("%s %.40q: want a whole number from 0 to %d", key, value, limit)
	}
	return n, nil
}

func size(key, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return 0, fmt.Errorf("%s %.40q: want bytes, a whole number from 0 to %d", key, value, int64(1)<<50)
	}
	return n, nil
}

var names = [...]string{"turn", "phase", "step", "layer", "slot", "expert", "weight", "residency", "expert_bytes"}

var limits = [6]int{math.MaxInt32, Decode, math.MaxInt32, MaxLayers - 1, MaxExperts - 1, MaxExperts - 1}

func (p *parser) row(line string) error {
	var field [len(names)]string
	rest := line
	for i := range field {
		var more bool
		field[i], rest, more = strings.Cut(rest, ",")
		if more != (i < len(field)-1) {
			return fmt.Errorf("%d columns, want %d: %.60q", strings.Count(line, ",")+1, len(names), line)
		}
	}
	var n [len(limits)]int
	for i := range n {
		var err error
		if n[i], err = number(names[i], field[i], limits[i]); err != nil {
			return err
		}
	}
	pick := Pick{Turn: int32(n[0]), Phase: int32(n[1]), Step: int32(n[2]), Layer: int32(n[3]), Slot: int32(n[4]), Expert: int32(n[5]), Weight: NoWeight}
	if field[6] != "" {
		w, err := strconv.ParseFloat(field[6], 32)
		if err != nil || math.IsNaN(w) || math.IsInf(w, 0) {
			return fmt.Errorf("weight %.40q: want a number or nothing", field[6])
		}
		pick.Weight = float32(w)
	}
	hit, err := number("residency", field[7], 1)
	if err != nil {
		return err
	}
	pick.Hit = hit == 1
	if pick.Bytes, err = size("expert_bytes", field[8]); err != nil {
		return err
	}
	p.t.Picks = append(p.t.Picks, pick)
	return nil
}

// finish checks what can be checked only with the whole file at hand, and
// fills in what an incomplete header leaves out.
func (p *parser) finish() (*Trace, error) {
	t := &p.t
	if len(t.Picks) == 0 {
		return nil, errors.New("no rows: the trace is empty")
	}
	layers, experts := max(p.nLayer, len(t.Layers)), 0
	for i := range t.Picks {
		layers, experts = max(layers, int(t.Picks[i].Layer)+1), max(experts, int(t.Picks[i].Expert)+1)
	}
	if t.Experts != 0 && experts > t.Experts {
		return nil, fmt.Errorf("expert %d picked, but the header says n_expert=%d", experts-1, t.Experts)
	}
	t.Experts = max(t.Experts, experts)
	if layers*t.Experts > maxCells {
		return nil, fmt.Errorf("%d layers of %d experts: more than %d in all", layers, t.Experts, maxCells)
	}
	p.grow(layers - 1)
	for i := range t.Picks { // a header without sizes: the misses tell
		if k := &t.Picks[i]; t.Layers[k.Layer].ExpertBytes == 0 {
			t.Layers[k.Layer].ExpertBytes = k.Bytes
		}
	}
	for i := range t.Picks {
		if l := t.Picks[i].Layer; t.Layers[l].ExpertBytes == 0 {
			return nil, fmt.Errorf("layer %d has no size: want a line \"# layer=%d expert_bytes=N dense_bytes=N\"", l, l)
		}
	}
	return t, nil
}
