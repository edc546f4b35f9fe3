package backends

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/probes"
)

// DeviceFlag is the flag of `bmoe probe` that makes it a device's child.
const DeviceFlag = "device"

// Host is the name by which the CPU backend is asked for.
const Host = "CPU"

// answer is what a child prints.
type answer struct {
	Report     *device.Report     `json:"report"`
	Projection *device.Projection `json:"projection,omitempty"`
	ProjectErr string             `json:"project_err,omitempty"`
	Placement  *device.Placement  `json:"placement,omitempty"` // of the fitter's child, which has nothing else
}

// Child is a child's whole side: it measures the device called name for the
// model of cfg and prints one line.
// It ends when in closes, which is when its parent is gone.
func Child(ctx context.Context, cfg config.Config, name string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if in != nil {
		go func() {
			_, _ = io.Copy(io.Discard, in)
			cancel()
		}()
	}
	if cfg.Model == "" {
		return errors.New("no model was named; type -m FILE")
	}
	m, err := model.Open(cfg.Model)
	if err != nil {
		return fmt.Errorf("-m: %w", err)
	}
	a, err := ask(ctx, m, cfg, name)
	if err != nil {
		return fmt.Errorf("--%s %s: %w", DeviceFlag, name, err)
	}
	return json.NewEncoder(out).Encode(a)
}

// ask measures in this process.
func ask(ctx context.Context, m *model.Model, cfg config.Config, name string) (*answer, error) {
	if names, ok := strings.CutPrefix(name, fitter); ok {
		p, err := device.Place(ctx, m, cfg, strings.Split(names, "+"))
		return &answer{Placement: p}, err
	}
	h := probes.Local()
	for _, at := range endpoints(cfg.RPC) {
		if err := device.RegisterRPC(at); err != nil {
			return nil, err
		}
	}
	spec, ok := specOf(m, threads(h, cfg), h.Memory().Holdable.Or(0))
	if !ok {
		return nil, errors.New("the model has no matrix to multiply")
	}
	report, err := device.Measure(ctx, name, spec)
	if err != nil {
		return nil, err
	}
	a := &answer{Report: report}
	offload := name
	if name == Host {
		offload = ""
	}
	if a.Projection, err = device.Project(m.Shards, cfg, widths(cfg), offload); err != nil {
		a.ProjectErr = err.Error()
	}
	return a, nil
}

// threads is what a run would compute with.
func threads(h *probes.Host, cfg config.Config) int {
	if cfg.Threads > 0 {
		return cfg.Threads
	}
	cores := int(h.Cores().Physical.Or(1))
	return max(1, min(cores, runtime.NumCPU())) // NumCPU: those this process may use
}

// endpoints splits a --rpc list.
func endpoints(list string) []string {
	var out []string
	for at := range strings.SplitSeq(list, ",") {
		if at = strings.TrimSpace(at); at != "" {
			out = append(out, at)
		}
	}
	return out
}

// args start a child for a device. A server that does not answer ends the
// process that asks, so a child is told of its own server only.
func args(cfg config.Config, name, rpc string) []string {
	out := []string{"probe", "--" + DeviceFlag + "=" + name}
	cfg.RPC, cfg.PrefillDevice, cfg.DeviceSplit, cfg.OverrideTensor = rpc, "", "", ""
	cfg.Prompt, cfg.File, cfg.Stop, cfg.RouteTrace = "", "", nil, "" // nothing of the caller's text
	return append(out, config.Args(&cfg)...)
}
