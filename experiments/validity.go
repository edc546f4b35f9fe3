package experiments

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// coldShare is how much of a model may still be in the page cache for a start
// to count as cold.
const coldShare = 0.02

// side is one arm of a comparison with its runs that ended well, and those
// that did not.
type side struct {
	arm  record.Arm
	done []*record.Run
	lost []*record.Run
}

func sideOf(arm record.Arm, blocks []block) side {
	s := side{arm: arm}
	for _, b := range blocks {
		r := b.runs[arm.Name]
		switch {
		case r == nil:
		case r.Run.State == record.StateDone:
			s.done = append(s.done, &r.Run)
		default:
			s.lost = append(s.lost, &r.Run)
		}
	}
	return s
}

// voidReason says why the runs of a and b do not answer the question, "" when
// they do.
func voidReason(e *record.Experiment, t Terms, a, b side) string {
	for _, s := range []side{a, b} {
		if len(s.done) == 0 && len(s.lost) > 0 {
			return fmt.Sprintf("every run of %s %s: %s", armWords(e, s.arm.Name), ending(s.lost[0].State), fate(s.lost[0]))
		}
	}
	if len(a.done) == 0 || len(b.done) == 0 {
		return ""
	}
	for _, check := range []func(*record.Experiment, Terms, side, side) string{oneKnob, leverActed, equalWork, coldVerified} {
		if why := check(e, t, a, b); why != "" {
			return why
		}
	}
	return ""
}

func ending(state string) string {
	switch state {
	case record.StateKilled:
		return "was killed"
	case record.StateTimeout:
		return "did not end in its time"
	case record.StateUnstarted:
		return "did not start"
	}
	return "failed"
}

// fate is the first line of what is known of a run that died, without the paths
// that only its own machine knows.
func fate(r *record.Run) string {
	text := record.PublicError(r)
	if text == "" {
		text = r.Signal
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first == "" {
		return fmt.Sprintf("exit code %d", r.ExitCode)
	}
	return first
}

// oneKnob checks that the configurations the runs resolved to differ in the
// lever and in nothing else.
func oneKnob(e *record.Experiment, t Terms, a, b side) string {
	for _, s := range []side{a, b} {
		for _, r := range s.done[1:] {
			if d := config.Diff(&s.done[0].Config, &r.Config); len(d) > 0 {
				return fmt.Sprintf("runs of %s resolved to different %s", armWords(e, s.arm.Name), strings.Join(d, ", "))
			}
		}
	}
	diff := config.Diff(&a.done[0].Config, &b.done[0].Config)
	switch e.Kind {
	case KindAA:
		if len(diff) > 0 {
			return "arms that must be equal differ in " + strings.Join(diff, ", ")
		}
		return ""
	case KindEarns:
		allowed := t.Allowed[b.arm.Name]
		for _, d := range diff {
			if !slices.Contains(allowed, d) && !slices.Contains(allowed, anyKnob) {
				return fmt.Sprintf("%s differs from %s in %s as well", b.arm.Name, a.arm.Name, d)
			}
		}
		if len(diff) == 0 {
			return "the two arms resolved to the same configuration"
		}
		return ""
	}
	diff = slices.DeleteFunc(diff, func(knob string) bool { return followed(e.Lever, knob, &a.arm.Config) })
	if len(diff) == 0 {
		return fmt.Sprintf("%s resolved to the same value in both arms", e.Lever)
	}
	if !slices.Equal(diff, []string{e.Lever}) {
		return fmt.Sprintf("the arms differ in %s, not in %s alone", strings.Join(diff, ", "), e.Lever)
	}
	return ""
}

// followed says that a knob was left to follow the lever.
func followed(lever, knob string, registered *config.Config) bool {
	def := config.Default()
	p, ok := config.Lookup(knob)
	return ok && slices.Contains(levers[lever].follows, knob) && p.Get(registered) == p.Get(&def)
}

// leverActed checks that a counter which the lever moves differs.
func leverActed(e *record.Experiment, t Terms, a, b side) string {
	if e.Kind == KindAA || e.Lever == "" {
		return ""
	}
	var still []string
	for _, c := range levers[e.Lever].counters {
		x, y := counterMedian(c, a.done), counterMedian(c, b.done)
		if x != y {
			return ""
		}
		still = append(still, fmt.Sprintf("%s is %.0f in both arms", c.name, x))
	}
	return fmt.Sprintf("%s did not act: %s", e.Lever, strings.Join(still, ", "))
}

func counterMedian(c counter, runs []*record.Run) float64 {
	var x []float64
	for _, r := range runs {
		x = append(x, float64(c.get(&r.Stats)))
	}
	return analysis.Median(x)
}

// equalWork checks that both arms produced the same tokens from the same
// number of routed experts: a lever that changes what is computed changes time
// for that reason too.
func equalWork(e *record.Experiment, t Terms, a, b side) string {
	if t.AllowWork {
		return ""
	}
	all := append(slices.Clone(a.done), b.done...)
	first := all[0]
	for _, r := range all[1:] {
		switch {
		case r.Measured.DecodeTokens != first.Measured.DecodeTokens || r.Measured.PromptTokens != first.Measured.PromptTokens:
			return fmt.Sprintf("unequal work: %d prompt and %d decoded tokens against %d and %d",
				first.Measured.PromptTokens, first.Measured.DecodeTokens, r.Measured.PromptTokens, r.Measured.DecodeTokens)
		case routedComparable(first, r) && r.Stats.ExpertsRouted != first.Stats.ExpertsRouted:
			return fmt.Sprintf("unequal work: %d experts routed against %d", first.Stats.ExpertsRouted, r.Stats.ExpertsRouted)
		case !bitsMayDiffer(e) && r.TokenHash != first.TokenHash:
			return "unequal work: the tokens differ, and the lever must not change them"
		}
	}
	return ""
}

// routedComparable: a resident run has no router hook and counts nothing, and
// the last layer routes only the last token of each graph of a prompt, so that
// the count depends on how wide the graphs are.
func routedComparable(a, b *record.Run) bool {
	return a.Config.MoeStream == b.Config.MoeStream && a.Stats.PrefillGraphs == b.Stats.PrefillGraphs
}

func bitsMayDiffer(e *record.Experiment) bool {
	return e.Kind == KindEarns || levers[e.Lever].bits
}

func coldVerified(e *record.Experiment, t Terms, a, b side) string {
	if e.CacheState != CacheCold {
		return ""
	}
	for _, s := range []side{a, b} {
		for _, r := range s.done {
			switch f := r.EnvBefore.CachedModelFrac; {
			case f < 0:
				return "asked for a cold page cache, and nobody could verify that it was"
			case f > coldShare:
				return fmt.Sprintf("asked for a cold page cache, and %.0f %% of the model stayed in it before a run of %s", 100*f, armWords(e, s.arm.Name))
			}
		}
	}
	return ""
}

// armWords is an arm as a sentence has it: "io-threads 4", "plan", "arm A1".
func armWords(e *record.Experiment, name string) string {
	switch e.Kind {
	case KindAA:
		return "arm " + name
	case KindEarns, KindPlan:
		return name
	}
	return e.Lever + " " + name
}
