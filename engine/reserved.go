package engine

import (
	"github.com/bmoe/bmoe/engine/counters"
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

// Reserved is what llama.cpp holds on each device that layers are placed on,
// bytes: their weights, context and buffers. It is nil where none are placed or
// the build does not tell.
func (s *Session) Reserved() map[string]int64 {
	if s.ctx == nil || s.placed == nil {
		return nil
	}
	rows, err := s.ctx.Memory()
	if err != nil {
		return nil
	}
	out := map[string]int64{}
	for i, d := range s.placed.devs {
		info, err := d.Info()
		if err != nil {
			return nil
		}
		for _, r := range rows {
			if r.Device == info.Name {
				out[s.placed.names[i]] += r.Model + r.Context + r.Compute
			}
		}
	}
	return out
}
