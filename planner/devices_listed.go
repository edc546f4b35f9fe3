package planner

import "fmt"

// listDevices prints one line per device with both measurements, and keeps
// three answers apart when there is none: no accelerator in this machine, none
// in this build, nobody looked.
func (st *planning) listDevices() {
	b := &st.p.Backends
	if len(st.p.Devices) == 0 {
		switch {
		case Ask(b.Looked) != Yes:
			st.note("devices", "-", Unprobed, "Nobody looked for compute devices.", "owed: listing the backends")
		case b.Linked.Or(0)+b.Loaded.Or(0) == 0:
			st.note("devices", "none in this build", Measured, "This build carries no accelerator backend, whatever the machine has.", "no accelerator backend is linked in and none was found beside the program")
		default:
			st.note("devices", "none", Measured, "This machine has no accelerator that the build's backends can see.",
				fmt.Sprintf("%d accelerator backends linked, %d loaded, and none lists a device", b.Linked.Or(0), b.Loaded.Or(0)))
		}
		return
	}
	for i := range st.p.Devices {
		st.listDevice(&st.p.Devices[i])
	}
}

func (st *planning) listDevice(d *Device) {
	if Ask(d.Usable) == No {
		which := d.Name
		if d.Description != "" { // of an RPC server's: where that is
			which += " (" + d.Description + ")"
		}
		st.note("device", d.Name, Measured, "Device "+which+" is unusable and kept out of the run.",
			"device "+d.Name+": UNUSABLE, "+d.Usable.Reason+"; what ended its probe would end the load the same way")
		return
	}
	if d.Narrow.OK() && d.Narrow.Value == 0 || d.Wide.OK() && d.Wide.Value == 0 {
		st.note("device", d.Name, Unprobed, "Device "+d.Name+" would not run this model's matmul.", "a rate of zero means unmeasured, never slow: "+d.RunsExpertOp.Reason)
		return
	}
	own := "its memory was not identified"
	switch {
	case st.ownMemory(d):
		own = size(d.FreeBytes.Value) + " of its own memory free"
	case Ask(d.HostMemory) == No:
		own = "it claims memory of its own and states no size, so it is charged to the host"
	case Ask(d.HostMemory) == Yes:
		own = "it draws on the host's memory"
		st.note("shared-memory", d.Name, Measured, "Device "+d.Name+" shares this memory, which is counted once.",
			"a device on the host's memory adds no capacity; moving a tensor to it frees nothing")
	}
	st.note("device", d.Name, Measured,
		fmt.Sprintf("Device %s: %s at one token, %s at 128.", d.Name, rateOf(d.Narrow), rateOf(d.Wide)),
		fmt.Sprintf("one token wide %s (host %s), 128 wide %s (host %s), agreement %s and %s; %s",
			rateOf(d.Narrow), rateOf(st.p.Host.Narrow), rateOf(d.Wide), rateOf(st.p.Host.Wide), Ask(d.Identity), Ask(d.IdentityWide), own))
}
