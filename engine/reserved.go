package engine

import (
	"fmt"

	"github.com/bmoe/bmoe/engine/counters"
	"github.com/bmoe/bmoe/engine/device"
)

// reserved counts what llama.cpp holds, by whose memory it is. Where the build
// does not tell, nothing is counted.
func (s *Session) reserved(c *counters.Counters) {
	if s.ctx == nil {
		return
	}
	rows, err := s.ctx.Memory()
	if err != nil {
		return
	}
	for _, r := range rows {
		if r.Device == "" {
			c.HostContextBytes, c.HostComputeBytes = r.Context, r.Compute
		} else {
			c.DeviceReservedBytes += r.Model + r.Context + r.Compute
		}
	}
}

// Compare sets what the capacity fitter projected for devices and for the
// host's buffers against what the session has reserved, one line each.
func (s *Session) Compare(p *device.Placement) []string {
	c := s.Counters()
	var projected int64
	for _, d := range p.Shares {
		projected += d.Model + d.Context + d.Compute
	}
	return []string{
		against("devices", projected, c.DeviceReservedBytes),
		against("the host's context", p.HostContext, c.HostContextBytes),
		against("the host's buffers", p.HostCompute, c.HostComputeBytes),
	}
}

func against(what string, projected, reserved int64) string {
	const mib = 1 << 20
	off := ""
	if projected > 0 {
		off = fmt.Sprintf(" (%+.1f %%)", 100*float64(reserved-projected)/float64(projected))
	}
	return fmt.Sprintf("%s: %.1f MiB projected, %.1f MiB reserved%s", what, float64(projected)/mib, float64(reserved)/mib, off)
}
