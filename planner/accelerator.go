package planner

import "fmt"

// weighAccelerators looks at computing streamed experts on a device during
// decode. Nothing arms it: a streamed expert lives in memory this engine owns,
// and a device must be known to compute from that memory, to agree with the
// host, to win by a margin, and the graph crossings it adds must be priced.
// Every device that looks attractive gets a line with what it lacks.
func (st *planning) weighAccelerators() {
	if !st.stream {
		return
	}
	for i := range st.p.Devices {
		d := &st.p.Devices[i]
		if Ask(d.Usable) == No {
			continue
		}
		st.weighAccelerator(d)
	}
}

func (st *planning) weighAccelerator(d *Device) {
	host, okHost := st.p.Host.Narrow.Get()
	dev, okDev := d.Narrow.Get()
	figures := fmt.Sprintf("device %s reads %s one token wide, the host %s", d.Name, rateOf(d.Narrow), rateOf(st.p.Host.Narrow))
	switch {
	case !okHost || !okDev:
		st.note("unmeasured-compute", d.Name, Unprobed, "Device "+d.Name+" was not timed against the host, so decoding stays on the host.",
			"moving decode needs both rates; owed: the one-token matmul on device "+d.Name+" and on the host")
	case Ask(d.Identity) == No:
		st.note("device-excluded", d.Name, Measured, "Device "+d.Name+" computes something else than the host does, so it is left out.",
			fmt.Sprintf("the probe's matmul differs by %.2g where %.2g is allowed; its rate is not looked at", d.NMSE.Value, st.pol.NMSEMax))
	case dev < host*st.pol.MinBackendWin:
		st.note("extra-offload", rate(dev), Measured, fmt.Sprintf("Decoding stays on the host: device %s is not clearly faster at one token (%s against %s).", d.Name, rate(dev), rate(host)),
			fmt.Sprintf("%s; it must win by a factor of %.2f", figures, st.pol.MinBackendWin))
	case Ask(d.HostPtrHonour) == No:
		st.note("device-host-pointer", d.Name, Measured, "Device "+d.Name+" cannot compute from memory this program owns.",
			figures+"; handed a host pointer it did not honour it, so streamed experts cannot be computed there")
	case Ask(d.HostPtrHonour) == DontKnow && Ask(d.HostPtr) != Yes:
		st.note("device-host-pointer", d.Name, Unprobed, "Whether device "+d.Name+" can compute from memory this program owns is not known.",
			figures+"; an advertised no is no evidence of absence and trying it may crash, so nothing is armed; owed: a safe test of wrapping host memory")
	case st.splitSeconds(d) == 0:
		st.note("device-crossing", "-", Unprobed, "Device "+d.Name+" is faster per byte, but what each crossing to it costs was not measured.",
			fmt.Sprintf("%s, yet a split graph crosses twice per layer (%d times a token) and a crossing's price is unmeasured; owed: the time of one crossing", figures, 2*st.m.layers))
	default:
		cost := float64(2*st.m.layers) * st.splitSeconds(d)
		gain := float64(st.m.cycle)/host - float64(st.m.cycle)/dev
		st.note("device-unapplied", seconds(gain-cost), Derived, fmt.Sprintf("Decoding streamed experts on device %s would change a token by %s; this program cannot do it yet.", d.Name, seconds(cost-gain)),
			fmt.Sprintf("%s: %s a token gained on the experts against %s of crossings; slots are host memory and no rule moves decode", figures, seconds(gain), seconds(cost)))
	}
}

// splitSeconds is the price of one crossing; 0 when nobody measured it.
func (st *planning) splitSeconds(d *Device) float64 {
	return d.SplitSeconds.Or(st.pol.DeviceSplitSeconds)
}

// ownMemory reports whether a device is known to have memory of its own whose
// size is stated. A pool without a size cannot be budgeted against, so such a
// device is charged to the host.
func (st *planning) ownMemory(d *Device) bool {
	return Ask(d.HostMemory) == No && d.FreeBytes.Or(0) > 0
}

func rateOf(f Fact[float64]) string {
	if v, ok := f.Get(); ok {
		return rate(v)
	}
	return "an unmeasured rate"
}
