package backends

import (
	"cmp"
	"context"
	"net"
	"strings"
	"time"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
)

// Devices asks every accelerator in a child of its own: those the host's child
// listed, then those of the RPC servers of cfg.
func (e *Engine) Devices(ctx context.Context, m *model.Model, cfg config.Config) []planner.Device {
	var out []planner.Device
	if a, err := e.askHost(ctx, m, cfg); err == nil {
		for _, d := range a.Report.Devices {
			if d.Kind != device.CPU && d.Backend != device.RPC {
				f, _ := e.probe(ctx, m, cfg, d, "")
				out = append(out, f)
			}
		}
	}
	return append(out, e.remote(ctx, m, cfg)...)
}

// remote asks the RPC servers' devices. All servers are greeted first, at once:
// one that does not answer is one device that cannot be used, and no child is
// started to find that out again.
func (e *Engine) remote(ctx context.Context, m *model.Model, cfg config.Config) (out []planner.Device) {
	servers := config.Servers(cfg.RPC)
	start := time.Now()
	silent := device.Greet(ctx, servers, cmp.Or(e.Greet, device.GreetTime))
	waited := time.Since(start)
	for i, at := range servers {
		if err := silent[i]; err == nil {
			out = append(out, e.server(ctx, m, cfg, at, len(out))...)
		} else if ctx.Err() == nil {
			f := deviceFacts(device.Info{Name: device.RPCName(len(out)), Description: at}, nil, err)
			f.Usable = planner.MeasuredFact(false, 0, err.Error()).Timed(waited.Seconds(), start.UTC().Format(time.RFC3339))
			limitServer(&f, cfg, at)
			out = append(out, f)
		}
	}
	return out
}

// probe asks one device and times the asking.
func (e *Engine) probe(ctx context.Context, m *model.Model, cfg config.Config, d device.Info, rpc string) (planner.Device, *answer) {
	start := time.Now()
	a, err := e.ask(ctx, m, cfg, d.Name, rpc)
	if err == nil {
		d = a.Report.Info
	}
	f := deviceFacts(d, a, err)
	f.Usable = f.Usable.Timed(time.Since(start).Seconds(), start.UTC().Format(time.RFC3339))
	return f, a
}

// server asks the devices of one RPC server, which a child that knows no other
// server counts from zero; here they are counted on from first.
func (e *Engine) server(ctx context.Context, m *model.Model, cfg config.Config, at string, first int) []planner.Device {
	var out []planner.Device
	for n, total := 0, 1; n < total; n++ {
		f, a := e.probe(ctx, m, cfg, device.Info{Name: device.RPCName(n), Description: at}, at)
		if n == 0 && a != nil {
			total = max(1, a.Beside)
		}
		f.Name, f.Description = device.RPCName(first+n), at
		limitServer(&f, cfg, at)
		out = append(out, f)
	}
	return out
}

// limitServer corrects what a server says of its memory: by the caller's
// limit, and by where the server is.
func limitServer(f *planner.Device, cfg config.Config, at string) {
	if limit := int64(cfg.RPCMB) << 20; limit > 0 {
		for _, x := range []*planner.Fact[int64]{&f.FreeBytes, &f.TotalBytes} {
			if n, ok := x.Get(); !ok || n > limit {
				*x = planner.Fact[int64]{State: planner.Known, Value: limit, Provenance: planner.Operator, Reason: "--rpc-mb"}
			}
		}
	}
	if here(at) {
		f.HostMemory = planner.MeasuredFact(true, 0, "the server runs on this machine, so its memory is the host's")
	}
}

// here reports whether an endpoint is this machine's loopback.
func here(at string) bool {
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		host = at
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || (ip != nil && ip.IsLoopback())
}
