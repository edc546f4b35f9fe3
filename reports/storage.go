package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/results/record"
)

// storageProfiles returns each machine's newest profile that holds a storage curve,
// in the order of the machines' ids.
func storageProfiles(list []record.Profile) []record.Profile {
	newest := map[string]record.Profile{}
	for _, p := range list {
		if len(storageCurve(p)) == 0 {
			continue
		}
		if old, ok := newest[p.MachineID]; !ok || p.At.After(old.At) || (p.At.Equal(old.At) && p.ID > old.ID) {
			newest[p.MachineID] = p
		}
	}
	var out []record.Profile
	for _, p := range newest {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b record.Profile) int { return strings.Compare(a.MachineID, b.MachineID) })
	return out
}

// storageFact is the name under which a profile lists its rate curve.
const storageFact = "storage.rate"

// storageCurve reads the rate curve out of a profile; nil where it has none.
func storageCurve(p record.Profile) []planner.RatePoint {
	for _, f := range p.Facts {
		if f.Name != storageFact || f.Value == nil {
			continue
		}
		raw, err := json.Marshal(f.Value)
		if err != nil {
			return nil
		}
		var curve []planner.RatePoint
		if json.Unmarshal(raw, &curve) != nil {
			return nil
		}
		return curve
	}
	return nil
}

func (d *Data) storageSection() (Section, error) {
	s := Section{ID: "storage", Title: "Storage"}
	for _, p := range d.index().storage {
		curve := storageCurve(p)
		name := machineName(d.machine(p.MachineID))
		f, ok, err := storageFigure("storage-"+short(p.MachineID), name, curve)
		if err != nil {
			return s, err
		}
		if !ok {
			continue
		}
		t := Table{
			Caption: fmt.Sprintf("Rate of reads, %s; measured %s; n = %s.", name, date(p.At), analysis.Count(len(curve), "point")),
			Columns: columns("#KiB a read", "#lanes", "#MB/s", "#spread %"),
		}
		slices.SortStableFunc(curve, func(a, b planner.RatePoint) int {
			return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.Lanes, b.Lanes))
		})
		for _, c := range curve {
			t.Rows = append(t.Rows, []string{digits(float64(c.Size)/1024, 4), strconv.Itoa(c.Lanes), digits(c.BytesPerS/1e6, 4), percent(c.Spread)})
		}
		s.Blocks = append(s.Blocks, f, t)
	}
	if len(s.Blocks) == 0 {
		s.Blocks = append(s.Blocks, Text("No storage curve is stored: `bmoe probe -m MODEL` measures one."))
	}
	return s, nil
}
