package planner

import (
	"path/filepath"
	"testing"
)

// However few experts a placement leaves to the host, a token needs some of
// them: a run without room for any is declined.
func TestFewExpertsOnTheHostStillNeedRoom(t *testing.T) {
	c := readCase(t, filepath.Join("testdata", "plans", "placement-charged.txt"))
	c.pins["repack"] = "on" // the copy of the other weights takes all there is
	if err := c.read("fact placement.host-experts 16\nfact memory.available 4GB"); err != nil {
		t.Fatal(err)
	}
	plan := planOf(t, c)
	if free := ledger(plan, "free", CeilingHoldable); !plan.Declined || free < 0 {
		t.Errorf("declined %v with %d bytes free: %+v", plan.Declined, free, plan.Ledger)
	}
}
