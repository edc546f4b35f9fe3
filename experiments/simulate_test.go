package experiments

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// outcome counts of many simulated experiments.
type tally struct {
	trials, alarms, covered int
	verdicts                map[string]int
}

// simulate runs n experiments of 8 pairs through the whole harness on a machine
// whose truth is known.
func simulate(t *testing.T, n int, truth float64, machine engine) tally {
	t.Helper()
	res := tally{trials: n, verdicts: map[string]int{}}
	for i := range n {
		q := lanesQuestion(t, 8, "1", "4")
		q.Kind, q.Lever = KindAA, ""
		q.Arms = AAArms(baseConfig())
		q.Seed = int64(i)
		q.At = q.At.Add(time.Duration(i) * time.Second)
		m := machine
		m.rng = rand.New(rand.NewPCG(uint64(i), 7))
		m.effect = map[string]float64{"A2": truth}
		c := conduct(t, register(t, q), &m).Comparisons[0]
		if c.Lo > 0 || c.Hi < 0 {
			res.alarms++
		}
		if analysis.LogRatio(c.Lo) <= truth && truth <= analysis.LogRatio(c.Hi) {
			res.covered++
		}
		res.verdicts[c.Verdict]++
	}
	return res
}

const trials = 2000

// The exact error of the 8-pair interval, 10 of 256 sign patterns, and three
// standard errors of it over the trials.
func bounds() (alpha, three float64) {
	alpha = 10.0 / 256
	return alpha, 3 * math.Sqrt(alpha*(1-alpha)/trials)
}

func TestFalseAlarms(t *testing.T) {
	alpha, three := bounds()
	pairNoise := 0.03 / math.Sqrt2 // of one run, for 3 % between the two of a pair
	for _, c := range []struct {
		name    string
		machine engine
		lower   float64
	}{
		{"no drift", engine{noise: pairNoise}, alpha - three},
		{"slowing by 1 % a run", engine{noise: pairNoise, drift: -0.01}, 0},
		{"autocorrelated noise", engine{noise: pairNoise, ar: 0.7}, 0},
		{"both", engine{noise: pairNoise, drift: -0.005, ar: 0.7}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := simulate(t, trials, 0, c.machine)
			rate, coverage := float64(r.alarms)/trials, float64(r.covered)/trials
			t.Logf("false alarms %.4f (exact %.4f, three standard errors %.4f), coverage %.4f, %v", rate, alpha, three, coverage, r.verdicts)
			if rate > alpha+three || rate < c.lower {
				t.Errorf("false alarms %.4f, want %.4f to %.4f", rate, c.lower, alpha+three)
			}
			if coverage < 0.94 {
				t.Errorf("coverage %.4f is under 0.94", coverage)
			}
		})
	}
}

func TestTrueEffectIsFound(t *testing.T) {
	t.Parallel()
	r := simulate(t, trials, math.Log(1.10), engine{noise: 0.03 / math.Sqrt2})
	t.Logf("10 %% at 3 %% noise: %v, coverage %.4f", r.verdicts, float64(r.covered)/trials)
	found := r.verdicts["better"] + r.verdicts["small"]
	if float64(found)/trials <= 0.95 {
		t.Errorf("found in %d of %d", found, trials)
	}
	if float64(r.covered)/trials < 0.94 {
		t.Errorf("coverage %.4f", float64(r.covered)/trials)
	}
	if r.verdicts["worse"] > 0 {
		t.Errorf("%d called a faster arm worse", r.verdicts["worse"])
	}
}

// The blocked order that the harness does not offer raises false alarms every
// time on a drifting machine; this shows that the simulation can fail.
func TestBlockedOrderWouldAlarm(t *testing.T) {
	alarms := 0
	for i := range 50 {
		q := lanesQuestion(t, 8, "1", "4")
		e := register(t, q)
		for s := range e.Schedule {
			e.Schedule[s].Arm = []string{"1", "4"}[s/8]
			e.Schedule[s].Block, e.Schedule[s].Pos = s%8, s/8
		}
		m := engine{rng: rand.New(rand.NewPCG(uint64(i), 9)), noise: 0.02, drift: -0.01}
		var runs []record.StoredRun
		for _, slot := range e.Schedule {
			r := m.Run(context.Background(), Job{Arm: armNamed(&e, slot.Arm), Slot: slot})
			runs = append(runs, record.StoredRun{Run: r, Slot: slot, Attempt: 1})
		}
		if c := Judge(e, runs).Comparisons[0]; c.Lo > 0 || c.Hi < 0 {
			alarms++
		}
	}
	if alarms < 45 {
		t.Errorf("only %d of 50 blocked experiments were fooled", alarms)
	}
}

// Holm and Bonferroni over four arms keep the error of the whole family.
func TestFamilyError(t *testing.T) {
	t.Parallel()
	const n = 600
	alarms := 0
	for i := range n {
		q := lanesQuestion(t, 8, "1", "2", "4", "8")
		q.Seed, q.At = int64(i), q.At.Add(time.Duration(i)*time.Second)
		m := engine{rng: rand.New(rand.NewPCG(uint64(i), 11)), noise: 0.03, drift: -0.002}
		for _, c := range conduct(t, register(t, q), &m).Comparisons {
			if c.PHolm <= 0.05 || c.Lo > 0 || c.Hi < 0 {
				alarms++
				break
			}
		}
	}
	if limit := 0.05 + 3*math.Sqrt(0.05*0.95/n); float64(alarms)/n > limit {
		t.Errorf("%d of %d families raised an alarm, more than %.3f", alarms, n, limit)
	}
}

// Two looks spend no more error than one.
func TestTwoLooks(t *testing.T) {
	t.Parallel()
	alarms, early := 0, 0
	for i := range 1000 {
		q := lanesQuestion(t, 8, "1", "4")
		q.Looks, q.Seed, q.At = 2, int64(i), q.At.Add(time.Duration(i)*time.Second)
		q.Margin = 0.0001
		m := engine{rng: rand.New(rand.NewPCG(uint64(i), 13)), noise: 0.03}
		c := conduct(t, register(t, q), &m).Comparisons[0]
		if c.Verdict != "undecided" && c.Verdict != "equivalent" {
			alarms++
		}
		if c.Pairs == 6 {
			early++
		}
	}
	if float64(alarms)/1000 > 0.05+3*math.Sqrt(0.05*0.95/1000) {
		t.Errorf("%d of 1000 without an effect", alarms)
	}
	if early == 0 {
		t.Error("the first look never decided")
	}
	q := lanesQuestion(t, 8, "1", "4")
	q.Looks = 2
	m := engine{rng: rand.New(rand.NewPCG(1, 1)), noise: 0.01, effect: map[string]float64{"4": 0.3}}
	if c := conduct(t, register(t, q), &m).Comparisons[0]; c.Pairs != 6 || c.Verdict != "better" {
		t.Errorf("a large effect took %d pairs: %s", c.Pairs, c.Verdict)
	}
}
