package backends

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

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
	Beside     int                `json:"beside,omitempty"`    // devices of its RPC server, itself included
	Memory     *topology          `json:"memory,omitempty"`
}

// lastWords is how long a child whose parent is gone may take to end itself.
const lastWords = time.Second

// Child is a child's whole side: it measures the device called name for the
// model of cfg and prints one line.
// It ends when in closes, which is when its parent is gone: in a moment by
// itself, or at once where a driver holds it up.
func Child(ctx context.Context, cfg config.Config, name string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if in != nil {
		go func() {
			_, _ = io.Copy(io.Discard, in)
			cancel()
			time.Sleep(lastWords)
			os.Exit(1)
		}()
		if err := device.DieBySignal(); err != nil {
			return err
		}
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
	registered, remote := name, (*device.Remote)(nil)
	if serverDevice(name) {
		var err error
		if remote, err = findRemote(ctx, cfg, name); err != nil {
			return nil, err
		}
		registered = remote.Name
	}
	a, err := measure(ctx, m, cfg, registered)
	if remote != nil && remote.Lost() != nil {
		return nil, remote.Lost()
	}
	if err != nil {
		return nil, err
	}
	if remote != nil {
		a.Beside = remote.Beside
		a.Report.Info.Description = remote.Server()
	}
	a.called(name)
	return a, nil
}

// serverDevice reports whether a device's name is one of an RPC server's.
func serverDevice(name string) bool { return strings.HasPrefix(name, device.RPC) }

func findRemote(ctx context.Context, cfg config.Config, name string) (*device.Remote, error) {
	if len(config.Servers(cfg.RPC)) == 0 {
		return nil, fmt.Errorf("no device is called %q: name its server with --rpc", name)
	}
	r, err := device.FindRemote(ctx, cfg.RPC, cfg.RPCMB, name)
	if err == nil && r == nil {
		err = fmt.Errorf("no device is called %q: the servers of --rpc lend RPC0 and on, one for each of their devices", name)
	}
	return r, err
}

func measure(ctx context.Context, m *model.Model, cfg config.Config, name string) (*answer, error) {
	h := probes.Local()
	spec, ok := specOf(m, threads(h, cfg), h.Memory().Holdable.Or(0))
	if !ok {
		return nil, errors.New("the model has no matrix to multiply")
	}
	if name != Host {
		spec.Sweep = min(spec.Sweep, deviceSweep)
	}
	report, err := device.Measure(ctx, name, spec)
	if err != nil {
		return nil, err
	}
	a := &answer{Report: report}
	offload := name
	if name == Host {
		offload = ""
	} else {
		a.Memory = memoryOf(h, &report.Info)
	}
	if a.Projection, err = device.Project(ctx, m.Shards, cfg, widths(cfg), offload, spec.Threads); err != nil {
		a.ProjectErr = err.Error()
	}
	return a, nil
}

// called gives the device the name that a run has for it: this process may
// have registered it under another one.
func (a *answer) called(name string) {
	was := a.Report.Info.Name
	a.Report.Info.Name = name
	if a.Projection == nil {
		return
	}
	for _, w := range a.Projection.Widths {
		for i := range w.Rows {
			if w.Rows[i].Device == was {
				w.Rows[i].Device = name
			}
		}
	}
}

// threads is what a run would compute with.
func threads(h *probes.Host, cfg config.Config) int {
	if cfg.Threads > 0 {
		return cfg.Threads
	}
	cores := int(h.Cores().Physical.Or(1))
	return max(1, min(cores, runtime.NumCPU())) // NumCPU: those this process may use
}

// args start a child for a device, which is told of its own server only: it
// need not wait for another one that does not answer.
func args(cfg config.Config, name, rpc string) []string {
	out := []string{"probe", "--" + DeviceFlag + "=" + name}
	cfg.RPC, cfg.PrefillDevice, cfg.DeviceSplit, cfg.OverrideTensor = rpc, "", "", ""
	cfg.Prompt, cfg.File, cfg.Stop, cfg.RouteTrace = "", "", nil, "" // nothing of the caller's text
	return append(out, config.Args(&cfg)...)
}
