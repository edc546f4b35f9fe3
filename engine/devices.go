package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/bmoe/bmoe/engine/internal/llama"
	"github.com/bmoe/bmoe/engine/internal/rpcdev"
	"github.com/bmoe/bmoe/engine/internal/rpclink"
)

// prefillDevice computes a session's wide graphs: llama.cpp hands it the
// matmuls that are wide enough and copies their weights to it, of the experts
// only those that were picked. A nil prefillDevice is the host.
type prefillDevice struct {
	name  string
	dev   llama.Device
	link  *rpclink.Link // nil: not an RPC server's
	least int           // tokens of the narrowest graph it is given
	on    bool          // contexts plan with it now
	gone  error         // it is not to be used again
}

// noDevice are the ways to say that the host computes prompts.
func noDevice(name string) bool { return name == "" || strings.EqualFold(name, "none") }

// connect reaches the servers of --rpc, once: one that hangs is not waited for
// again for every device that is looked up.
func (s *Session) connect(ctx context.Context) []*rpcdev.Server {
	if s.servers == nil {
		s.servers = rpcdev.Connect(ctx, s.cfg.RPC, int64(s.cfg.RPCMB)<<20)
	}
	return s.servers
}

// deviceNamed finds a device. RPC servers' devices are counted in the order of
// --rpc, whatever else this process has registered.
func (s *Session) deviceNamed(ctx context.Context, name string) (llama.Device, *rpclink.Link, error) {
	dev, link, known, err := rpcdev.Find(s.connect(ctx), name)
	if link != nil || err != nil {
		return dev, link, err
	}
	infos, err := llama.Devices()
	if err != nil {
		return llama.Device{}, nil, err
	}
	for _, i := range infos {
		if i.Kind == llama.DeviceCPU || strings.HasPrefix(i.Name, "RPC") {
			continue
		}
		if i.Name == name {
			d, err := llama.FindDevice(name)
			return d, nil, err
		}
		known = append(known, i.Name)
	}
	if len(known) == 0 {
		return llama.Device{}, nil, fmt.Errorf("no device is called %q: this run sees none beside the processor; name an RPC server with --rpc", name)
	}
	return llama.Device{}, nil, fmt.Errorf("no device is called %q; there are %s", name, strings.Join(known, ", "))
}

// armDevice finds the device of --prefill-device and what forbids its use.
func (s *Session) armDevice(ctx context.Context) (*prefillDevice, error) {
	c := &s.cfg
	if noDevice(c.PrefillDevice) {
		return nil, nil
	}
	if why := s.deviceExcluded(); why != "" {
		return nil, fmt.Errorf("--prefill-device %s: %s", c.PrefillDevice, why)
	}
	dev, link, err := s.deviceNamed(ctx, c.PrefillDevice)
	if err != nil {
		return nil, fmt.Errorf("--prefill-device: %w", err)
	}
	d := &prefillDevice{name: c.PrefillDevice, dev: dev, link: link, least: max(c.PrefillMinTokens, 2)}
	// The context opens as the host's, so that what it decides by its devices
	// is decided as without one.
	return d, dev.Offload(false, d.least)
}

// deviceExcluded says what else in the configuration rules a prefill device
// out, or "".
func (s *Session) deviceExcluded() string {
	switch {
	case !s.cfg.MoeStream:
		return "prompts are handed to a device only where experts are streamed; add --moe-stream, or place layers with --gpu-layers"
	case s.cfg.GPULayers > 0:
		return "layers are placed on devices (--gpu-layers), and it would load as the model's only device; drop one of the two"
	case s.cfg.Repack == "on":
		return "repacked weights can be read by the processor only; add --no-repack"
	}
	return ""
}

// withDevice opens the streamed model with its prefill device, or on best
// effort without it.
func (s *Session) withDevice(ctx context.Context, open func() error) error {
	dev, err := s.armDevice(ctx)
	if err == nil {
		s.device = dev
		if err = open(); err == nil {
			err = s.checkDevice(ctx)
		}
		if err == nil || dev == nil {
			return err
		}
		err = fmt.Errorf("--prefill-device %s: %w", dev.name, dev.explain(err))
	}
	if !s.cfg.PrefillBestEffort || ctx.Err() != nil {
		return err
	}
	s.notes = append(s.notes, fmt.Sprintf("prompts are computed on the host: %v", err))
	s.cfg.PrefillDevice = "none"
	notes := s.notes
	if err := s.drop(); err != nil {
		return err
	}
	s.notes = notes
	return open()
}

// planDevice switches the context's planning with the device on or off.
func (s *Session) planDevice(on bool) error {
	d := s.device
	if d == nil || d.on == on {
		return nil
	}
	if err := d.dev.Offload(on, d.least); err != nil {
		return err
	}
	d.on = on
	s.ctx.Replan()
	return nil
}

// takesGraph reports whether a graph of that many tokens is the device's, and
// has the context planned accordingly. In turn with the cache, the device's
// buffers are held only while a prompt runs.
func (s *Session) takesGraph(tokens int) (bool, error) {
	d := s.device
	if d == nil {
		return false, nil
	}
	mine := tokens >= d.least && !s.hostTurn && d.gone == nil
	if mine || s.hostTurn || s.cfg.SlotsOnDemand {
		if err := s.planDevice(mine); err != nil {
			return false, err
		}
	}
	return mine, nil
}

// watch has a lost server end the running graph. What follows is never called
// once the session is closed.
func (d *prefillDevice) watch(abort func()) {
	if d != nil && d.link != nil {
		d.link.OnLoss(func(error) { abort() })
	}
}

func (d *prefillDevice) unwatch() {
	if d != nil && d.link != nil {
		d.link.OnLoss(nil)
	}
}

// lost is how the device's server was lost, or nil.
func (d *prefillDevice) lost() error {
	if d == nil || d.link == nil {
		return nil
	}
	return d.link.Err()
}

// deviceFailed handles a graph that failed on the device: on best effort the
// host takes over, for good if the device is gone and else for this prompt.
func (s *Session) deviceFailed(failed error) (retry bool, err error) {
	d := s.device
	lost := d.lost()
	if failed = d.explain(failed); lost != nil {
		failed = fmt.Errorf("device %s: %w", d.name, lost)
	}
	if !s.cfg.PrefillBestEffort {
		if lost != nil {
			failed = fmt.Errorf("%w; --prefill-best-effort would go on without it", failed)
		}
		return false, failed
	}
	if err := s.planDevice(false); err != nil {
		return false, errors.Join(failed, err)
	}
	if lost != nil {
		d.gone = lost
	}
	s.hook.Abort(false)
	s.stream.Reset()
	s.hostTurn = true
	s.notes = append(s.notes, fmt.Sprintf("the host computed a prompt in the device's place: %v", failed))
	return true, nil
}
