package planner

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The line about the graph's width names the width that the run computes with.
func TestTheWidthThatIsNamedIsTheOneUsed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plan := mustMake(rt, drawProfile(rt, 80), Pins{})
		used := fmt.Sprintf("%d tokens per pass", min(plan.Config.UBatch(), plan.Config.CtxSize))
		if d := decision(plan, "ubatch"); d.Brief != "" && !strings.HasPrefix(d.Brief, used) {
			rt.Fatalf("%s are used; the plan says %q", used, d.Brief)
		}
	})
}

// Graphs that become narrower because a layer finds no room never take more
// than the buffers that a placement leaves to the host.
func TestANarrowerGraphTakesNoMore(t *testing.T) {
	const placed = `include cards16
		fact placement.asked yes
		fact placement.gpu-layers 1
		fact placement.shares [{"device":"CARD0","layers":1,"bytes":900000000}]
		fact placement.host-experts 24GB
		fact placement.host-compute 20MiB`
	const project = `fact buffers.compute [{"width":512,"bytes":140000000},{"width":1024,"bytes":180000000}]`
	for facts, want := range map[string]int64{ // MiB of buffers
		"":                      0,
		project:                 95,
		project + "\n" + placed: 20,
	} {
		c := readCase(t, filepath.Join("testdata", "plans", "prompt-narrow.txt"))
		if err := c.read(facts); err != nil {
			t.Fatal(err)
		}
		plan := planOf(t, c)
		wantTopic(t, plan, "ubatch-narrow")
		got, free := ledger(plan, "compute buffers", CeilingHoldable)/mib, ledger(plan, "free", CeilingHoldable)
		if got != want || free < 0 {
			t.Errorf("%s: buffers of %d MiB and %d bytes free; want %d MiB", facts, got, free, want)
		}
	}
}
