package backends

import (
	"fmt"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/probes"
)

// topology says whether a device's memory is the host's, or that it could not
// be told.
type topology struct {
	Host planner.Tri `json:"host"`
	How  string      `json:"how"`
}

// memoryOf takes a backend's own word first: what it declares is not overruled
// by a difference in free memory, which may come from anything that runs here.
func memoryOf(h *probes.Host, d *device.Info) *topology {
	switch {
	case d.HostMemory:
		return &topology{planner.Yes, "its buffers are memory the processor reads"}
	case d.Kind == device.IGPU:
		return &topology{planner.Yes, "its backend declares it integrated, which is a device on the host's memory"}
	case d.Free > 0 && d.Free < 4*heldBytes:
		return &topology{planner.DontKnow, fmt.Sprintf("%d MiB free there are too few to tell by holding some", d.Free>>20)}
	}
	var rounds []round
	for len(rounds) < 3 {
		r, err := holdRound(h, d.Name)
		if err != nil {
			return &topology{planner.DontKnow, err.Error()}
		}
		rounds = append(rounds, r)
		if host := drawn(rounds); host != planner.DontKnow {
			return &topology{host, fmt.Sprintf("held %d MiB there; the host's available memory fell by %d MiB", heldBytes>>20, (r.before-r.held)>>20)}
		}
	}
	return &topology{planner.DontKnow, fmt.Sprintf("the host's available memory moved too much to tell, by %d MiB while %d were held there", (rounds[2].before-rounds[2].held)>>20, heldBytes>>20)}
}

// heldBytes are taken on a device to see whether the host misses them: more
// than its accounting wobbles by.
const heldBytes = 96 << 20

// round is the host's available memory around an allocation on a device.
type round struct{ before, held, after int64 }

func holdRound(h *probes.Host, name string) (r round, err error) {
	available := func() int64 { return h.Memory().Available.Or(0) }
	r.before = available()
	release, err := device.Hold(name, heldBytes)
	if err != nil {
		return r, err
	}
	r.held = available()
	release()
	r.after = available()
	if r.before == 0 || r.held == 0 || r.after == 0 {
		return r, fmt.Errorf("the host does not tell its available memory")
	}
	return r, nil
}

// drawn judges rounds: two in which memory went and came back are a device on
// the host's memory, two in which nothing moved are one with its own.
func drawn(rounds []round) planner.Tri {
	var host, own int
	for _, r := range rounds {
		fell, rose := r.before-r.held, r.after-r.held
		switch {
		case fell > heldBytes*3/4 && rose > heldBytes*3/4:
			host++
		case fell < heldBytes/4 && fell > -heldBytes/4 && rose < heldBytes/4 && rose > -heldBytes/4:
			own++
		}
	}
	switch {
	case host >= 2 && own == 0:
		return planner.Yes
	case own >= 2 && host == 0:
		return planner.No
	}
	return planner.DontKnow
}

// fact is the topology as a plan's rules read it.
func (t *topology) fact() planner.Flag {
	switch {
	case t == nil:
		return planner.UnknownFact[bool]("its probe did not answer", owedMemory)
	case t.Host == planner.DontKnow:
		return planner.UnknownFact[bool](t.How, owedMemory)
	}
	return planner.MeasuredFact(t.Host == planner.Yes, 0, t.How)
}

const owedMemory = "holding memory there on a quiet machine, the host's watched"
