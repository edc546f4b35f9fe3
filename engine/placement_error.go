package engine

import (
	"fmt"
	"strings"

	"github.com/bmoe/bmoe/engine/internal/rpclink"
)

// explain says what a load over devices failed of: a server that was lost, also
// where llama.cpp did not notice, or layers that do not fit.
func (p *placement) explain(err error) error {
	if p == nil {
		return err
	}
	if lost := p.lost(); lost != nil {
		return lost
	}
	return noRoom(err, p.links, "the layers do not fit there; place fewer (--gpu-layers, --device-split), or raise --rpc-mb if that bounds it")
}

// explain says the same of a device that prompts are computed on.
func (d *prefillDevice) explain(err error) error {
	if d.link == nil {
		return err
	}
	return noRoom(err, []*rpclink.Link{d.link}, "the prompt's buffers do not fit there; --ubatch makes them smaller, or raise --rpc-mb if that bounds it")
}

// noRoom adds to an error about an allocation what can be done. llama.cpp knows
// a server by its link's address only.
func noRoom(err error, links []*rpclink.Link, hint string) error {
	if err == nil || !strings.Contains(err.Error(), "allocat") {
		return err
	}
	text := err.Error()
	for _, l := range links {
		text = strings.ReplaceAll(text, l.Addr(), l.Server())
	}
	return fmt.Errorf("%s: %s", text, hint)
}
