package experiments

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/results/record"
)

func orderOf(slots []record.Slot) string {
	var b strings.Builder
	block := slots[0].Block
	for _, s := range slots {
		if s.Block != block {
			b.WriteByte(' ')
			block = s.Block
		}
		b.WriteString(s.Arm)
	}
	return b.String()
}

func TestABBA(t *testing.T) {
	slots, err := Schedule(DesignABBA, []string{"A", "B"}, 8, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := orderOf(slots), "AB BA BA AB BA AB AB BA"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Golden: a stored seed must give the same order for ever.
func TestScheduleIsStable(t *testing.T) {
	for _, c := range []struct {
		arms []string
		want string
	}{
		{[]string{"A", "B"}, goldenPairs},
		{[]string{"A", "B", "C", "D"}, goldenBlocks},
	} {
		slots, err := Schedule(DesignRandom, c.arms, 8, 0, 42)
		if err != nil {
			t.Fatal(err)
		}
		if got := orderOf(slots); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestScheduleRefuses(t *testing.T) {
	for _, c := range []struct {
		design string
		arms   []string
		n      int
		want   string
	}{
		{DesignABBA, []string{"A", "B", "C"}, 8, "abba"},
		{"blocked", []string{"A", "B"}, 8, "random, abba or blocks"},
		{DesignRandom, []string{"A"}, 8, "two arms"},
		{DesignRandom, []string{"A", "B"}, 0, "--pairs 0"},
	} {
		if _, err := Schedule(c.design, c.arms, c.n, 0, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Every block has every arm once; the pairs are half AB and half BA; over each
// square every arm stands equally often in each position and, in even numbers,
// after each other arm.
func TestScheduleIsBalanced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(2, 9).Draw(t, "arms")
		n := rapid.IntRange(1, 40).Draw(t, "blocks")
		warmup := rapid.IntRange(0, 2).Draw(t, "warmup")
		var arms []string
		for i := range k {
			arms = append(arms, string(rune('A'+i)))
		}
		slots, err := Schedule(DesignRandom, arms, n, warmup, rapid.Int64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		if len(slots) != k*(n+warmup) {
			t.Fatalf("%d slots", len(slots))
		}
		inBlock := map[string]int{}
		position := map[string]int{}
		for i, s := range slots {
			if s.Index != i || s.Block != max(i/k-warmup, WarmupBlock) {
				t.Fatalf("slot %d is %+v", i, s)
			}
			inBlock[fmt.Sprint(s.Block, s.Arm)]++
			if s.Block >= 0 {
				position[fmt.Sprint(s.Arm, s.Pos)]++
			}
		}
		for b := range n {
			for _, a := range arms {
				if inBlock[fmt.Sprint(b, a)] != 1 {
					t.Fatalf("block %d has arm %s %d times", b, a, inBlock[fmt.Sprint(b, a)])
				}
			}
		}
		period := k
		if k%2 == 1 {
			period = 2 * k
		}
		if k == 2 && n%2 == 0 || k > 2 && n%period == 0 {
			for _, a := range arms {
				for pos := range k {
					if position[fmt.Sprint(a, pos)] != n/k {
						t.Fatalf("arm %s stands %d times at %d in %d blocks", a, position[fmt.Sprint(a, pos)], pos, n)
					}
				}
			}
		}
	})
}

func TestWilliamsBalancesCarryOver(t *testing.T) {
	for k := 2; k <= 8; k++ {
		after := map[[2]int]int{}
		rows := williams(k)
		for _, row := range rows {
			for i := 1; i < k; i++ {
				after[[2]int{row[i-1], row[i]}]++
			}
		}
		want := len(rows) / k
		for a := range k {
			for b := range k {
				if a != b && after[[2]int{a, b}] != want {
					t.Errorf("k=%d: %d follows %d %d times, want %d", k, b, a, after[[2]int{a, b}], want)
				}
			}
		}
	}
}

func TestParseBand(t *testing.T) {
	const margin = 0.02
	for text, want := range map[string]string{
		"better by 5%..15%":      "5.0 to 15.0 % faster",
		"better by 5..15%":       "5.0 to 15.0 % faster",
		"Better  by 5% to 15%":   "5.0 to 15.0 % faster",
		"better by 5%":           "at least 5.0 % faster",
		"better by at least 5 %": "at least 5.0 % faster",
		"worse by 2%..4%":        "2.0 to 4.0 % slower",
		"slower by 10%":          "at most 10.0 % slower",
		"better":                 "at least 2.0 % faster",
		"worse":                  "at most 2.0 % slower",
		"equivalent":             "2.0 % slower to 2.0 % faster",
	} {
		b, err := ParseBand(text, margin)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := BandWords(b); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"", "good", "better by", "better by 15%..5%", "worse by 100%", "better by 5%..", "better by .%"} {
		if b, err := ParseBand(text, margin); err == nil {
			t.Errorf("%q is read as %v", text, b)
		}
	}
}

func TestParseMargin(t *testing.T) {
	for text, want := range map[string]float64{"2%": 0.02, "0.02": 0.02, " 1.5 % ": 0.015} {
		if got, err := ParseMargin(text); err != nil || cmp.Diff(got, want) != "" {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "2", "0%", "-1%", "100%", "two"} {
		if v, err := ParseMargin(text); err == nil {
			t.Errorf("%q is read as %v", text, v)
		}
	}
}

const (
	goldenPairs  = "AB AB BA BA AB BA AB BA"
	goldenBlocks = "CBAD BDCA DABC ACDB BADC ACBD CDAB DBCA"
)
