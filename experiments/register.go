package experiments

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// Kinds of experiment.
const (
	KindSweep = "sweep"
	KindAA    = "aa"
	KindPlan  = "plan"             // the plan's prediction against its own runs
	KindEarns = "plan-vs-baseline" // the plan against the defaults and each decision reverted
)

// The cache states a run may start from.
const (
	CacheWarm = "warm" // whatever the runs before left in the page cache
	CacheCold = "cold" // the model's files dropped from it, and that verified
)

// Two looks are at 6 and at 10 pairs; the second uses what error the first left
// (0.03125 + 14/1024 < 0.05).
const (
	firstLook     = 6
	secondLook    = 10
	secondLookErr = 14.0 / 1024
)

// Question is everything that is decided before the first run.
type Question struct {
	Kind       string
	Lever      string
	Arms       []record.Arm
	Baseline   string // an arm's name; "" is the first arm
	Metric     string
	Design     string // "" is random for two arms and blocks for more
	Seed       int64
	Pairs      int
	ExactPairs bool // keep Pairs even when they cannot decide
	Looks      int
	Margin     float64 // ratio less one
	Alpha      float64
	Band       *record.Band
	CacheState string
	Terms      Terms
	Machine    record.Machine
	Build      record.Build
	Model      record.Model
	At         time.Time
}

// Register writes the question down: the schedule, the falsifier and the id
// that everything in it has. The notes tell the caller what was adjusted and
// what to expect; they are for reading before the first run.
func Register(q Question) (e record.Experiment, notes []string, err error) {
	if err := q.check(); err != nil {
		return e, nil, err
	}
	if note := q.enoughPairs(); note != "" {
		notes = append(notes, note)
	}
	var names []string
	for _, a := range q.Arms {
		names = append(names, a.Name)
	}
	e = record.Experiment{
		Lever: q.Lever, Kind: q.Kind, Metric: q.Metric, Design: q.Design, Seed: q.Seed,
		Pairs: q.Pairs, Looks: q.Looks, Margin: q.Margin, Alpha: q.Alpha, Baseline: q.Baseline,
		Arms: q.Arms, Band: q.Band, CacheState: q.CacheState, RegisteredAt: q.At.UTC(),
		Machine: q.Machine, Build: q.Build, Model: q.Model,
	}
	if e.Schedule, err = q.schedule(names); err != nil {
		return e, nil, err
	}
	notes = append(notes, q.detectable()...)
	e.Question, e.Falsifier = q.words()
	e.Extra = q.Terms.extra()
	e.ID = e.ContentID()
	return e, notes, nil
}

func (q *Question) schedule(names []string) ([]record.Slot, error) {
	if q.Kind == KindPlan {
		var slots []record.Slot
		for i := range q.Pairs {
			slots = append(slots, record.Slot{Index: i, Block: i, Arm: names[0]})
		}
		return slots, nil
	}
	return Schedule(q.Design, names, q.Pairs, q.Terms.Warmup, q.Seed)
}

// check fills in what was left open and refuses what makes no sense.
func (q *Question) check() error {
	if len(q.Arms) == 0 || (len(q.Arms) < 2 && q.Kind != KindPlan) {
		return fmt.Errorf("a comparison needs two arms, got %d: give two or more --values", len(q.Arms))
	}
	if len(q.Arms) > MaxArms {
		return fmt.Errorf("%d arms are more than %d", len(q.Arms), MaxArms)
	}
	if _, err := metricOf(q.Metric); err != nil {
		return err
	}
	if q.Baseline == "" {
		q.Baseline = q.Arms[0].Name
	}
	found := false
	for _, a := range q.Arms {
		found = found || a.Name == q.Baseline
	}
	if !found && q.Kind != KindPlan {
		return fmt.Errorf("--baseline %q is none of the arms", q.Baseline)
	}
	if q.Design == "" {
		q.Design = DesignRandom
		if len(q.Arms) > 2 {
			q.Design = DesignBlocks
		}
	}
	if q.CacheState != CacheWarm && q.CacheState != CacheCold {
		return fmt.Errorf("--cache-state %q: want cold or warm", q.CacheState)
	}
	if q.Pairs < 1 || q.Pairs > 50 {
		return fmt.Errorf("--pairs %d: want 1 to 50", q.Pairs)
	}
	return q.checkLooks()
}

func (q *Question) checkLooks() error {
	switch {
	case q.Looks <= 1:
		q.Looks = 1
		return nil
	case q.Looks > 2:
		return fmt.Errorf("--looks %d: want 1 or 2", q.Looks)
	case len(q.Arms) > 2:
		return fmt.Errorf("--looks 2 is for one comparison: six pairs cannot decide %d", q.family())
	}
	q.Pairs = secondLook
	return nil
}

// family is how many comparisons share the error.
func (q *Question) family() int { return max(len(q.Arms)-1, 1) }

// enoughPairs raises the pairs to the fewest that can decide anything, unless
// the caller insists on fewer.
func (q *Question) enoughPairs() string {
	m, unit := q.family(), "pair"
	if q.Kind == KindPlan {
		unit = "run"
	}
	need := analysis.MinPairs(m, q.Alpha)
	if q.Pairs >= need {
		return ""
	}
	what := fmt.Sprintf("%s cannot decide %s at %s: %d are the fewest that can",
		analysis.Count(q.Pairs, unit), analysis.Count(m, "comparison"), analysis.Level(1-q.Alpha), need)
	if q.ExactPairs {
		return what + "; kept as asked, so expect undecided"
	}
	q.Pairs = need
	return what + fmt.Sprintf("; raised to %d (--exact-pairs keeps the number as given)", need)
}

// detectable says what the design can find before it is run.
func (q *Question) detectable() []string {
	if q.Kind == KindPlan {
		return nil
	}
	n, level := q.Pairs, q.level()
	mde := analysis.MDE(q.Terms.NoiseSD, n, level, 0.8)
	if math.IsInf(mde, 1) {
		q.Terms.MDE = 0
		return nil
	}
	q.Terms.MDE = analysis.Ratio(mde)
	notes := []string{fmt.Sprintf("%s find an effect of %.1f %% with 80 %% power at %s between like runs (%s)",
		analysis.Count(n, "pair"), 100*q.Terms.MDE, fmt.Sprintf("%.1f %% noise", 100*q.Terms.NoiseSD), q.Terms.NoiseSource)}
	if q.Band != nil && (q.Band.Hi-q.Band.Lo)/2 < mde {
		notes = append(notes, fmt.Sprintf("the predicted band, %s, is narrower than that: it is not likely to be confirmed; give more --pairs or a wider band", BandWords(*q.Band)))
	}
	return notes
}

func (q *Question) level() float64 {
	if q.Looks == 2 {
		return 1 - secondLookErr
	}
	return analysis.DisplayLevel(q.Alpha, q.family())
}

// words are the question and what would refute it.
func (q *Question) words() (question, falsifier string) {
	verb := metrics[q.Metric].verb
	var others []string
	for _, a := range q.Arms {
		if a.Name != q.Baseline {
			others = append(others, a.Name)
		}
	}
	switch q.Kind {
	case KindAA:
		return fmt.Sprintf("does a run that %s twice the same way differ from itself?", verb),
			"any verdict but equivalent or undecided shows that the harness sees differences that are not there"
	case KindPlan:
		return "does the plan measure what it predicts?",
			"the interval of measured over predicted seconds per token lies wholly outside the predicted interval"
	case KindEarns:
		return "which decisions of the plan earn their keep?",
			"the plan is not faster than " + q.Baseline + ", or no slower with a decision reverted"
	}
	question = fmt.Sprintf("is a run that %s faster with %s %s than with %s?", verb, q.Lever, strings.Join(others, ", "), q.Baseline)
	if q.Band == nil {
		return question, "the interval of the effect lies within the margin, or on the other side of no difference"
	}
	return question, "the interval of the effect lies wholly outside the predicted band, " + BandWords(*q.Band)
}
