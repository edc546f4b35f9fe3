package planner

import (
	"fmt"
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
