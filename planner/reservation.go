package planner

import "fmt"

// Projection is what the capacity fitter projected for a placement, bytes.
type Projection struct {
	Devices     []DeviceShare `json:"devices"`
	HostContext int64         `json:"host_context_bytes"`
	HostCompute int64         `json:"host_compute_bytes"`
}

// Reservation sets what was projected for one memory against what the run then
// reserved there, bytes.
type Reservation struct {
	What      string `json:"what"` // a device's name, "host context" or "host buffers"
	Projected int64  `json:"projected_bytes"`
	Reserved  int64  `json:"reserved_bytes"`
	// Within: as near as projections come. A device's to 3 % either way; the
	// host's never under what is reserved, and up to twice as high.
	Within bool `json:"within"`
}

// deviceTolerance is how far a device's projection may lie from what is
// reserved there, as a share of it.
const deviceTolerance = 0.03

// Against compares the projection with what a run reserved: on each device by
// its name, and on the host.
func (p *Projection) Against(devices map[string]int64, hostContext, hostCompute int64) []Reservation {
	var out []Reservation
	for _, d := range p.Devices {
		r := Reservation{What: d.Device, Projected: d.Bytes, Reserved: devices[d.Device]}
		off := float64(r.Reserved - r.Projected)
		r.Within = off <= deviceTolerance*float64(r.Projected) && -off <= deviceTolerance*float64(r.Projected)
		out = append(out, r)
	}
	for _, r := range []Reservation{{What: "host context", Projected: p.HostContext, Reserved: hostContext}, {What: "host buffers", Projected: p.HostCompute, Reserved: hostCompute}} {
		r.Within = r.Reserved <= r.Projected && 2*r.Reserved >= r.Projected
		out = append(out, r)
	}
	return out
}

// String is the comparison as a line.
func (r Reservation) String() string {
	off := ""
	if r.Projected > 0 {
		off = fmt.Sprintf(" (%+.1f %%)", 100*float64(r.Reserved-r.Projected)/float64(r.Projected))
	}
	text := fmt.Sprintf("%s: %s MiB projected, %s reserved%s", r.What, mibText(r.Projected), mibText(r.Reserved), off)
	if !r.Within {
		text += ", further apart than projections come"
	}
	return text
}
