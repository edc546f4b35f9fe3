package device

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/engine/synth"
)

// The fitter may divide a layer's experts between a device and the host. Such a
// layer is brought to the host whole, and the sizes are those of what is loaded.
func TestADividedLayerIsBroughtWhollyToTheHost(t *testing.T) {
	s := synth.Default()
	s.Layers, s.Experts, s.Used, s.Embd, s.FF, s.Vocab = 4, 8, 2, 64, 32, 512
	path := filepath.Join(t.TempDir(), "m.gguf")
	if _, err := synth.Write(t.Context(), path, s, synth.Options{}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	layer := m.RoutedBytes() / 4
	for _, tt := range []struct {
		name     string
		placed   int
		patterns []string
		split    bool
		host     int64 // layers whose experts are left there
		more     string
	}{
		{"all placed", 5, nil, false, 0, ""},
		{"layers 2 and 3", 3, nil, false, 2, ""},
		{"whole layers kept by pattern", 5, []string{`blk\.[01]\.ffn_(up|down|gate)_exps`}, false, 2, ""},
		{"down of one layer", 5, []string{`blk\.2\.ffn_down_exps`}, true, 1, `blk\.2\.ffn_(up|down|gate_up|gate)_exps=CPU`},
		{"down of one layer beside layers that are not placed", 4, []string{`blk\.1\.ffn_down_exps`}, true, 2, `blk\.1\.ffn_(up|down|gate_up|gate)_exps=CPU`},
		{"what is no expert", 5, []string{`blk\.2\.attn_q`}, false, 0, ""},
	} {
		p := &Placement{GPULayers: tt.placed}
		if err := p.settle(m, tt.patterns); err != nil {
			t.Fatal(err)
		}
		if p.SplitFFN != tt.split || p.HostExperts != tt.host*layer || !strings.HasSuffix(p.Overrides, tt.more) {
			t.Errorf("%s: split %v, %d bytes of experts on the host, overrides %q; want %v, %d, %q", tt.name, p.SplitFFN, p.HostExperts, p.Overrides, tt.split, tt.host*layer, tt.more)
		}
	}
	if err := (&Placement{GPULayers: 5}).settle(m, []string{"("}); err == nil {
		t.Error("a pattern that is none was taken")
	}
}

// Every type the experts come in is asked for, at both widths: one that is not
// run is a no, and so is one that could not be asked for.
func TestEveryExpertTypeIsAskedFor(t *testing.T) {
	shapes := []Shape{{Type: 2}, {Type: 8}, {Type: 14}}
	for _, bad := range []uint32{0, 2, 8, 14} {
		for _, width := range []int{1, WideTokens} {
			for _, failed := range []error{nil, errors.New("no such type")} {
				got := every(shapes, func(x Shape, tokens int) (bool, error) {
					if x.Type == bad && tokens == width {
						return failed != nil, failed
					}
					return true, nil
				})
				if want := bad == 0; got != want {
					t.Errorf("type %d, %d wide, %v: %v", bad, width, failed, got)
				}
			}
		}
	}
}
