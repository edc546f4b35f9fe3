package planner

import (
	"cmp"
	"fmt"
	"strings"
)

// placementPins are the knobs with which a caller places layers by hand.
var placementPins = []string{"gpu-layers", "device-split", "override-tensor"}

// applyPlacement loads what the capacity fitter placed on devices, if every
// device it used is known to have memory of its own and says how much. A device
// that draws on the host's memory would have the same bytes counted twice.
func (st *planning) applyPlacement() {
	for _, knob := range placementPins {
		if st.pinned(knob) {
			st.disabled("placement", knob)
			st.placed = st.cfg.GPULayers > 0
			return
		}
	}
	pl := &st.p.Placement
	shares, ok := pl.Shares.Get()
	if Ask(pl.Asked) != Yes || !ok || len(shares) == 0 || pl.GPULayers.Or(0) == 0 {
		return
	}
	why, brief := st.placementRefusal(shares), ""
	if n, ok := pl.HostExperts.Get(); why == "" && ok && n == 0 && st.m.moe && st.pinned("moe-stream") && st.cfg.MoeStream {
		why = "it leaves no experts on the host, and " + flagOf("moe-stream") + " asks to stream some"
		brief = "it leaves no experts on the host, and the caller asks to stream some"
	}
	left := st.placedBuffers()
	if host := left.held(); why == "" && st.hold.known && host > st.hold.usable {
		why = fmt.Sprintf("the %s of context and buffers that it leaves to the host exceed the %s that may be held", size(host), size(st.hold.usable))
	}
	if why != "" {
		st.declinePlacement(shares, why, cmp.Or(brief, why))
		return
	}
	st.placed = true
	st.adoptPlacement(shares)
}

func (st *planning) declinePlacement(shares []DeviceShare, why, brief string) {
	st.note("placement-declined", sharesText(shares), Derived,
		"The placement on devices is not used: "+brief+".",
		fmt.Sprintf("the capacity fitter placed %d layers (%s), and %s; its placement is quoted and not applied", st.p.Placement.GPULayers.Value, sharesText(shares), why))
}

// placementRefusal says why a placement cannot be trusted, or "".
func (st *planning) placementRefusal(shares []DeviceShare) string {
	for _, s := range shares {
		if s.Bytes == 0 {
			continue
		}
		d := st.findDevice(s.Device)
		switch {
		case d == nil:
			return "device " + s.Device + " was not probed"
		case Ask(d.Usable) == No:
			return "device " + s.Device + " is unusable"
		case Ask(d.HostMemory) == Yes:
			return "device " + s.Device + " draws on the host's memory, which would be counted twice"
		case Ask(d.HostMemory) == DontKnow:
			return "whose memory device " + s.Device + " uses was not measured"
		case d.TotalBytes.Or(0) <= 0:
			return "device " + s.Device + " claims memory of its own and states no size"
		case s.Bytes > d.FreeBytes.Or(s.Bytes):
			return fmt.Sprintf("device %s has %s free and would be given %s", s.Device, size(d.FreeBytes.Value), size(s.Bytes))
		}
	}
	return ""
}

func (st *planning) adoptPlacement(shares []DeviceShare) {
	pl := &st.p.Placement
	reason := fmt.Sprintf("the capacity fitter's placement, loaded as it projected it: %s; every device it used has memory of its own and states its size", sharesText(shares))
	var split []string
	for _, s := range shares {
		split = append(split, fmt.Sprintf("%s=%d", s.Device, s.Layers))
	}
	d := Decision{Provenance: Derived, Topic: "placement", Reason: reason}
	d.Brief = fmt.Sprintf("%d layers are computed on devices, where there is room for them.", pl.GPULayers.Value)
	st.decide("gpu-layers", itoa(pl.GPULayers.Value), d)
	d.Brief = fmt.Sprintf("Each device gets the share that was sized for it: %s.", strings.Join(split, ", "))
	st.decide("device-split", strings.Join(split, ","), d)
	if o := pl.Overrides.Or(""); o != "" {
		d.Brief = "Experts without room on a device stay on the host."
		st.decide("override-tensor", o, d)
	}
	if Ask(pl.SplitFFN) == Yes {
		st.note("placement-split-layer", "-", Derived, "A layer whose experts were divided between device and host is kept on the host.",
			"the fitter divided one layer's experts between a device and the host; the streamer loads a layer's experts as a set, so all of that layer's experts stay on the host")
	}
	st.plan.Placement = &Projection{shares, pl.HostContext.Value, pl.HostCompute.Value}
	st.placedWidth(false)
	st.afterPlacement()
}

// placedWidth keeps graphs inside the width that the placement has room for
// and charges the host what the fitter says is left to it: context and buffers
// of the placed layers lie on the devices. A resident run, whose passes read
// nothing, has that width exactly.
func (st *planning) placedWidth(resident bool) {
	pl := &st.p.Placement
	width, ok := pl.Width.Get()
	if ok && !st.pinned("ubatch") && (st.width() > width || resident && st.width() < width) {
		st.decide("ubatch", itoa(width), Decision{
			Provenance: Derived, Topic: "ubatch-placed",
			Brief:  fmt.Sprintf("%d tokens per pass, for which the placement on devices has room.", width),
			Reason: fmt.Sprintf("the devices' shares were sized for graphs of %d tokens; a wider one takes memory there that was given to layers", width),
		})
	}
	st.buffers = st.placedBuffers()
}

// placedBuffers is what a placement leaves to the host of context and buffers:
// no more than without one.
func (st *planning) placedBuffers() buffers {
	b, pl := st.buffers, &st.p.Placement
	if n, ok := pl.HostContext.Get(); ok && (n < b.context || b.kvFrom == "unknown") {
		b.context, b.kvFrom = n, "beside the devices', by the fitter"
	}
	if n, ok := pl.HostCompute.Get(); ok && (n < b.compute || !st.p.Buffers.Compute.OK()) {
		b.compute = n
	}
	return b
}

// afterPlacement is the two early exits: nothing left on the host, or what is
// left fits there.
func (st *planning) afterPlacement() {
	pl := &st.p.Placement
	hostExperts, ok := pl.HostExperts.Get()
	if !ok || !st.m.moe {
		return
	}
	if hostExperts < st.m.routed {
		st.m.cycle = max(1, int64(float64(st.m.cycle)*float64(hostExperts)/float64(max(st.m.routed, 1))))
		if st.m.layers > 0 && st.m.routed > 0 {
			st.m.layers = max(1, st.m.layers*hostExperts/st.m.routed)
		}
		st.m.routed = hostExperts
	}
	if dense, ok := pl.HostDense.Get(); ok && dense < st.m.dense {
		st.m.read = int64(float64(st.m.read) * float64(dense) / float64(max(st.m.dense, 1)))
		st.m.dense = dense
	}
	if st.pinned("moe-stream") {
		return
	}
	if hostExperts == 0 {
		st.exitResident(RegimeDevices, "Every layer's experts are on devices, so nothing is left to stream.",
			"the placement leaves no routed experts on the host")
		return
	}
	compute := st.defaultCompute()
	if pl.HostCompute.OK() {
		compute = st.buffers.compute
	}
	rest := st.m.routed + st.m.dense + st.buffers.context + compute
	if st.hold.known && rest <= st.hold.usable && !st.needsAir() {
		st.exitResident(RegimeFits, fmt.Sprintf("What the devices leave on the host, %s, fits there, so nothing is streamed.", size(rest)),
			fmt.Sprintf("experts left on the host %s + other weights %s + buffers are inside the %s that may be held: the classic host offload", size(st.m.routed), size(st.m.dense), size(st.hold.usable)))
	}
}

func (st *planning) exitResident(regime, brief, reason string) {
	st.plan.Regime, st.stream, st.air = regime, false, false
	st.decide("moe-stream", "off", Decision{Provenance: Derived, Topic: regime, Brief: brief, Reason: reason})
	st.residentWidth()
}

func sharesText(shares []DeviceShare) string {
	parts := make([]string, len(shares))
	for i, s := range shares {
		parts[i] = fmt.Sprintf("%s %d layers %s", s.Device, s.Layers, size(s.Bytes))
	}
	return strings.Join(parts, ", ")
}

func (st *planning) findDevice(name string) *Device {
	for i := range st.p.Devices {
		if st.p.Devices[i].Name == name {
			return &st.p.Devices[i]
		}
	}
	return nil
}
