package planner

import "fmt"

// deviceChoice is the device armed for prompts.
type deviceChoice struct {
	dev    *Device
	held   int64 // charged to what the host may hold
	locked int64 // of that, to the lockable total
	own    bool  // its buffers are in memory of its own
	most   int   // expert slots its own memory has room for; 0: no bound
	gain   float64
}

// choosePrefillDevice arms the fastest device for which four things hold: it
// was measured 128 tokens wide, it gave the host's answer there, it wins by
// the margin, and it fits the ledger without costing decode its protection.
func (st *planning) choosePrefillDevice(*allocation) {
	if len(st.p.Devices) == 0 {
		return
	}
	if st.pinned("prefill-device") {
		st.disabled("prefill-device", "prefill-device")
		if st.cfg.PrefillDevice != "" && st.cfg.PrefillDevice != "none" {
			st.chargePinnedDevice()
		}
		return
	}
	if st.placed {
		st.keep("prefill-device", Decision{
			Provenance: Derived, Topic: "prefill-device",
			Brief:  "No device for prompts: layers are already placed on devices.",
			Reason: "a prefill device loads as the model's only device, and every placed layer would land on it",
		})
		return
	}
	var best deviceChoice
	var refused []string
	for i := range st.p.Devices {
		d := &st.p.Devices[i]
		c, why := st.weighPrefill(d)
		if why != "" {
			refused = append(refused, d.Name+": "+why)
			continue
		}
		if best.dev == nil || c.gain > best.gain {
			best = c
		}
	}
	if best.dev == nil {
		st.refusePrefill(refused)
		return
	}
	st.device = best
	st.armPrefill()
}

// weighPrefill checks the four facts and the ledger; why is the refusal.
func (st *planning) weighPrefill(d *Device) (deviceChoice, string) {
	host, okHost := st.p.Host.Wide.Get()
	wide, okDev := d.Wide.Get()
	switch {
	case Ask(d.Usable) == No:
		return deviceChoice{}, "unusable, " + d.Usable.Reason
	case Ask(d.SetsUp) == No:
		return deviceChoice{}, "the last run that asked for it did without: " + d.SetsUp.Reason
	case Ask(d.RunsExpertOp) == No:
		return deviceChoice{}, "it does not run this model's expert types"
	case !okDev || wide <= 0 || !okHost || host <= 0:
		return deviceChoice{}, "not measured 128 tokens wide on both sides"
	case Ask(d.IdentityWide) != Yes:
		return deviceChoice{}, "it was not shown to give the host's answer at that width"
	case wide < host*st.pol.MinBackendWin:
		return deviceChoice{}, fmt.Sprintf("%s against the host's %s does not win by %.2f", rate(wide), rate(host), st.pol.MinBackendWin)
	}
	c, why := st.chargeDevice(d)
	if why != "" {
		return c, why
	}
	c.gain = wide / host
	return c, st.deviceFits(c)
}

// chargeDevice is the device's row: two layers' other weights and its compute
// buffer stay for the session, the experts' slots are charged with the prompt.
func (st *planning) chargeDevice(d *Device) (deviceChoice, string) {
	c := deviceChoice{dev: d, own: st.ownMemory(d)}
	var compute int64
	if Ask(d.Places) != No {
		points, ok := d.Compute.Get()
		if !ok {
			return c, "its compute buffer was not projected"
		}
		compute, _ = computeAt(points, st.width())
	}
	stays := 2*st.p.Model.LayerOther.Or(0) + compute
	if c.own {
		free := d.FreeBytes.Value
		switch {
		case stays+2*st.m.layer <= free:
			c.most = 2
		case stays+st.m.layer <= free:
			c.most = 1
		default:
			return c, fmt.Sprintf("its own memory has %s free and a layer needs %s", size(free), size(stays+st.m.layer))
		}
		return c, ""
	}
	c.held = stays
	if Ask(d.BuffersExempt) == Yes && st.lockCeilingExists() {
		c.locked = stays
	}
	return c, ""
}

// lockCeilingExists: where nothing can be locked there is nothing to outbid.
func (st *planning) lockCeilingExists() bool {
	return (st.locks.inKnown && st.locks.inBytes > 0) || (st.locks.storeKnown && st.locks.storeBytes > 0)
}

// deviceFits tries the row: the run must still stream with a cache of at least
// one token cycle, and dense set and cache must keep their locks.
func (st *planning) deviceFits(c deviceChoice) string {
	before := st.trialCache(deviceChoice{})
	after := st.trialCache(c)
	if st.cfg.CacheMB >= 0 && st.pinned("cache-mb") {
		after.bytes = min(after.left, int64(st.cfg.CacheMB)*mib)
		before.bytes = after.bytes
	}
	short := st.m.cycle - after.bytes
	switch {
	case short > 0:
		return fmt.Sprintf("its %s would leave the cache %s short of one token cycle", size(c.held), size(short))
	case before.locked > 0 && after.locked == 0:
		return fmt.Sprintf("its %s would cost the cache its lock", size(c.held))
	case st.dense.locked > 0 && st.locks.storeKnown && st.dense.locked+c.locked > st.locks.storeBytes:
		return fmt.Sprintf("its %s would cost the other weights their lock", size(c.locked))
	case st.m.layer > after.bytes+max(0, after.left-after.bytes):
		return fmt.Sprintf("a layer of experts, %s, finds no room in turn with the cache", size(st.m.layer))
	}
	return ""
}

// trialCache sizes the cache as if a device were armed, deciding nothing.
func (st *planning) trialCache(c deviceChoice) cacheChoice {
	trial := *st
	trial.device = c
	t := cacheChoice{left: trial.leftForCache()}
	t.bytes = min(max(0, t.left), st.m.whole())
	if st.takenBack() && st.locks.inKnown && trial.lockLeft() >= st.m.cycle {
		t.bytes = min(t.bytes, trial.lockLeft())
		t.locked = t.bytes
	}
	return t
}

func (st *planning) armPrefill() {
	d := st.device.dev
	figures := fmt.Sprintf("device %s computes %s 128 tokens wide against the host's %s, with the same result", d.Name, rateOf(d.Wide), rateOf(st.p.Host.Wide))
	held := "nothing of this memory"
	if !st.device.own {
		held = size(st.device.held) + " for the session"
	}
	st.decide("prefill-device", d.Name, Decision{
		Provenance: Measured, Topic: "prefill-device",
		Brief:  fmt.Sprintf("Prompts are computed on device %s, %.1f times as fast as the host; it takes %s.", d.Name, st.device.gain, held),
		Reason: fmt.Sprintf("%s; its row is %s, and the cache keeps a token cycle. Turn it off with %s none", figures, held, flagOf("prefill-device")),
	})
	st.decide("prefill-best-effort", "on", Decision{
		Provenance: Derived, Topic: "prefill-device",
		Brief:  "If the device cannot be set up, prompts are computed on the host.",
		Reason: "the plan chose the device, so a load must not fail for it",
	})
}

func (st *planning) refusePrefill(refused []string) {
	text := ""
	for i, r := range refused {
		if i > 0 {
			text += "; "
		}
		text += r
	}
	st.keep("prefill-device", Decision{
		Provenance: Measured, Topic: "prefill-device",
		Brief: "No device qualifies for prompts: " + text + ".", Reason: "each device was weighed and refused: " + text,
	})
}

// chargePinnedDevice puts a device the caller named on the ledger.
func (st *planning) chargePinnedDevice() {
	if d := st.findDevice(st.cfg.PrefillDevice); d != nil {
		c, _ := st.chargeDevice(d)
		st.device = c
	}
}
