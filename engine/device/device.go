// Package device measures compute devices, the CPU included, with one expert
// matmul in a model's own type, one token and 128 tokens wide. A driver may end
// the process that touches it, so callers run this in a process they can lose.
package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bmoe/bmoe/engine/internal/llama"
)

// Info is what a device says about itself; see the fields.
type Info = llama.DeviceInfo

// The kinds of devices.
const (
	CPU         = llama.DeviceCPU
	GPU         = llama.DeviceGPU
	IGPU        = llama.DeviceIGPU
	Accelerator = llama.DeviceAccel
)

// List names the devices this build sees, the CPU included.
func List() ([]Info, error) { return llama.Devices() }

// Shape is the expert matmul that is timed.
type Shape struct {
	Type    uint32 `json:"type"` // ggml type that most expert bytes come in
	Cols    int64  `json:"cols"`
	Rows    int64  `json:"rows"`
	Experts int    `json:"experts"`
	Used    int    `json:"used"`
	// Slice is the bytes of one expert's weights of that shape.
	Slice int64 `json:"slice"`
}

// Spec says how a device is measured.
type Spec struct {
	Shape   Shape   `json:"shape"`             // of most expert bytes: the one that speaks for the model
	Classes []Shape `json:"classes,omitempty"` // every shape the model's experts come in
	Bytes   []int64 `json:"bytes,omitempty"`   // of the experts in each class
	Dense   Shape   `json:"dense"`             // of most other bytes; none where Slice is 0
	Threads int     `json:"threads"`           // of the CPU backend
	// Sweep is how many bytes of weights the one-token matmuls go through:
	// large against the processor's caches, small against memory.
	Sweep int64 `json:"sweep"`
}

// Rate is a rate in bytes of weights per second and how far its repeats lay
// apart, (max-min)/median.
type Rate struct {
	BytesPerS float64 `json:"bytes_per_s"`
	Spread    float64 `json:"spread"`
	NMSE      float64 `json:"nmse"` // against Report.Against
}

// Report is what was measured on one device. A rate that could not be taken is
// nil, with the reason in Why under its name.
type Report struct {
	Info         Info              `json:"info"`
	Narrow       *Rate             `json:"narrow,omitempty"` // one token wide; of the host: over the classes as they are mixed
	Wide         *Rate             `json:"wide,omitempty"`   // 128 wide: bytes x tokens
	NarrowRepack *Rate             `json:"narrow_repack,omitempty"`
	WideRepack   *Rate             `json:"wide_repack,omitempty"`
	Dense        *Rate             `json:"dense,omitempty"` // one token wide, the other weights
	DenseRepack  *Rate             `json:"dense_repack,omitempty"`
	RepackRate   float64           `json:"repack_rate,omitempty"` // bytes repacked per second by one thread
	CopyRate     float64           `json:"copy_rate,omitempty"`
	SendRate     float64           `json:"send_rate,omitempty"` // bytes per second from the host to the device
	Crossing     float64           `json:"crossing,omitempty"`  // seconds to hand it a row and have its answer back, halved
	PerNode      float64           `json:"per_node,omitempty"`  // seconds of a graph node that computes next to nothing
	Repacks      []bool            `json:"repacks,omitempty"`   // by class: the CPU backend has another layout
	Devices      []Info            `json:"devices"`             // all that are registered
	Linked       []string          `json:"linked,omitempty"`    // backends that came linked
	Loaded       []string          `json:"loaded,omitempty"`    // backends loaded as modules, with a device or without
	RunsAll      bool              `json:"runs_all"`            // every class, at both widths
	Against      string            `json:"against"`             // what the results were compared with
	Module       string            `json:"module,omitempty"`
	Why          map[string]string `json:"why,omitempty"`
}

const (
	// WideTokens is the width of the wide matmul.
	WideTokens  = 128
	repeatLeast = 3
	repeatMost  = 200
	repeatFor   = 0.04    // seconds of passes of one window
	passMost    = 0.04    // seconds of one pass
	mostClasses = 4       // that are timed, those of most bytes
	wideFlops   = 1 << 30 // work of one wide pass, at most
)

// Measure times the shape on the device called name. Its results are compared
// with the CPU backend's, the CPU's own with plain floats.
func Measure(ctx context.Context, name string, s Spec) (*Report, error) {
	infos, err := List()
	if err != nil {
		return nil, err
	}
	r := &Report{Why: map[string]string{}, Module: llama.CPUModule(), Devices: infos}
	if r.Linked, r.Loaded, err = llama.Backends(); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(infos, func(d Info) bool { return d.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("no device is called %q", name)
	}
	r.Info = infos[i]
	r.RunsAll = every(append([]Shape{s.Shape}, s.Classes...), func(x Shape, tokens int) (bool, error) {
		return x.matmul(x.Experts, 1).Runs(name, tokens)
	})
	if r.Info.Kind == CPU {
		r.Against = "plain floats"
		return r, measureHost(ctx, r, s)
	}
	r.Against = "the CPU backend"
	host := slices.IndexFunc(infos, func(d Info) bool { return d.Kind == CPU })
	if host < 0 {
		return nil, errors.New("there is no CPU backend to compare with")
	}
	return r, measureDevice(ctx, r, infos[host].Name, s)
}

// every reports whether each shape runs at both widths.
func every(shapes []Shape, runs func(x Shape, tokens int) (bool, error)) bool {
	for _, x := range shapes {
		for _, tokens := range []int{1, WideTokens} {
			if ok, err := runs(x, tokens); err != nil || !ok {
				return false
			}
		}
	}
	return true
}

// layout is how many tensors of how many experts the sweep holds. A tensor has
// no more experts than the model's, because the kernels pay for each of them,
// and a multiple of those that one token uses.
func (s Spec) layout() (experts, tensors int) {
	x := s.Shape
	fit := int(max(1, s.Sweep/x.Slice))
	experts = max(1, min(x.Experts, fit)/x.Used) * x.Used
	return experts, max(1, fit/experts)
}

// wide is how many experts a token uses in the wide matmul, and of how many:
// as in the model, scaled down where the model's width is more than a probe
// should compute.
func (s Spec) wide() (used, of int) {
	flops := 2 * s.Shape.Cols * s.Shape.Rows * WideTokens
	used = int(min(int64(s.Shape.Used), max(1, wideFlops/flops)))
	experts, _ := s.layout()
	of = max(used, s.Shape.Experts*used/s.Shape.Used)
	return used, min(of, experts)
}

func (x Shape) matmul(experts, tensors int) llama.MatmulShape {
	return llama.MatmulShape{Type: x.Type, Cols: x.Cols, Rows: x.Rows, Experts: experts, Tensors: tensors, Used: x.Used}
}
