package engine

import (
	"fmt"
	"strings"
)

// explain says what a load over devices failed of: a server that was lost, also
// where llama.cpp did not notice, or layers that do not fit. llama.cpp knows a
// server by its link's address only.
func (p *placement) explain(err error) error {
	if p == nil {
		return err
	}
	if lost := p.lost(); lost != nil {
		return lost
	}
	if err == nil || !strings.Contains(err.Error(), "allocat") {
		return err
	}
	text := err.Error()
	for _, l := range p.links {
		text = strings.ReplaceAll(text, l.Addr(), l.Server())
	}
	return fmt.Errorf("%s: the layers do not fit there; place fewer (--gpu-layers, --device-split), or raise --rpc-mb if that bounds it", text)
}
