package experiments

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/results/record"
)

func TestRegister(t *testing.T) {
	q := lanesQuestion(t, 6, "1", "2", "4", "8")
	e, notes, err := Register(q)
	if err != nil {
		t.Fatal(err)
	}
	if e.Pairs != 7 || len(e.Schedule) != 28 || !strings.Contains(notes[0], "6 pairs cannot decide 3 comparisons at 95.0 %: 7 are the fewest that can; raised to 7") {
		t.Errorf("%d pairs, notes %q", e.Pairs, notes)
	}
	if e.ID == "" || e.ID != e.ContentID() {
		t.Errorf("id %q is not the content's", e.ID)
	}
	for name, change := range map[string]func(*Question){
		"seed": func(q *Question) { q.Seed++ }, "pairs": func(q *Question) { q.Pairs = 9 }, "margin": func(q *Question) { q.Margin = 0.03 },
		"arm": func(q *Question) { q.Arms[1].Config.Threads = 3 }, "wait": func(q *Question) { q.Terms.EntryWaitS = 5 },
		"band": func(q *Question) { q.Band = &record.Band{Lo: 0, Hi: 1} },
	} {
		other := lanesQuestion(t, 6, "1", "2", "4", "8")
		change(&other)
		if register(t, other).ID == e.ID {
			t.Errorf("another %s leaves the id", name)
		}
	}
	q = lanesQuestion(t, 8, "1", "4")
	q.Band = &record.Band{Lo: 0.09, Hi: 0.11}
	_, notes, err = Register(q)
	if err != nil || !strings.Contains(strings.Join(notes, "\n"), "not likely to be confirmed") {
		t.Errorf("a narrow band passes without a word: %q, %v", notes, err)
	}
	for name, change := range map[string]func(*Question){
		"one arm": func(q *Question) { q.Arms = q.Arms[:1] }, "metric": func(q *Question) { q.Metric = "speed" },
		"baseline": func(q *Question) { q.Baseline = "3" }, "cache": func(q *Question) { q.CacheState = "tepid" },
		"looks": func(q *Question) { q.Looks = 3 }, "pairs": func(q *Question) { q.Pairs = 0 },
		"two looks of three": func(q *Question) { q.Looks = 2; q.Arms = append(q.Arms, record.Arm{Name: "x"}) },
	} {
		q := lanesQuestion(t, 8, "1", "4")
		change(&q)
		if _, _, err := Register(q); err == nil {
			t.Errorf("%s is not refused", name)
		}
	}
}

func TestTermsSurviveTheLedger(t *testing.T) {
	q := lanesQuestion(t, 8, "1", "4")
	q.Terms = Terms{Warmup: 2, EntryWaitS: 1.5, RunTimeoutS: 60, RunMemoryMB: 512, MaxTimeS: 9, Favour: "plan", Allowed: map[string][]string{"a": {"b"}}, NoiseSD: 0.01, NoiseSource: "x", Predict: "better"}
	e := register(t, q)
	got := TermsOf(&e)
	got.MDE = 0
	if d := cmp.Diff(q.Terms, got); d != "" {
		t.Error(d)
	}
}
