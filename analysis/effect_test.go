package analysis

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The table of method notes: pairs, cut and attained level, for 95 % and 90 %.
func TestCutTable(t *testing.T) {
	for _, c := range []struct {
		n      int
		level  float64
		k      int
		pct    float64
		enough bool
	}{
		{5, 0.95, 1, 93.8, false},
		{6, 0.95, 1, 96.9, true},
		{7, 0.95, 3, 95.3, true},
		{8, 0.95, 4, 96.1, true},
		{9, 0.95, 6, 96.1, true},
		{10, 0.95, 9, 95.1, true},
		{12, 0.95, 14, 95.8, true},
		{5, 0.90, 1, 93.8, true},
		{6, 0.90, 3, 90.6, true},
		{7, 0.90, 4, 92.2, true},
		{8, 0.90, 6, 92.2, true},
		{9, 0.90, 9, 90.2, true},
		{10, 0.90, 11, 91.6, true},
		{12, 0.90, 18, 90.8, true},
		{10, 1 - 0.0137, 5, 98.6, true}, // the second of two looks
	} {
		k, attained, ok := Cut(c.n, c.level)
		if k != c.k || ok != c.enough || math.Abs(100*attained-c.pct) > 0.051 {
			t.Errorf("Cut(%d, %v) = %d, %.2f %%, %v; want %d, %v %%, %v", c.n, c.level, k, 100*attained, ok, c.k, c.pct, c.enough)
		}
	}
}

// The distribution by dynamic programming against every sign pattern.
func TestTailAgainstEnumeration(t *testing.T) {
	for n := 1; n <= 12; n++ {
		max := n * (n + 1) / 2
		counts := make([]int, max+1)
		for m := range 1 << n {
			w := 0
			for i := range n {
				if m>>i&1 == 1 {
					w += i + 1
				}
			}
			counts[w]++
		}
		below := 0
		for w, c := range counts {
			below += c
			want := float64(below) / float64(int(1)<<n)
			if got := TailProbability(n, w); math.Abs(got-want) > 1e-12 {
				t.Fatalf("n=%d w=%d: %v, want %v", n, w, got, want)
			}
		}
	}
}

// The p-value by mid-ranks against a permutation test over every sign pattern.
func TestSignedRankPAgainstPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		d := make([]float64, n)
		for i := range d {
			d[i] = float64(rapid.IntRange(-6, 6).Draw(t, "d")) // ties and zeros
		}
		if got, want := SignedRankP(d), permutationP(d); math.Abs(got-want) > 1e-12 {
			t.Fatalf("p of %v = %v, want %v", d, got, want)
		}
	})
}

func permutationP(d []float64) float64 {
	var x []float64
	for _, v := range d {
		if v != 0 {
			x = append(x, v)
		}
	}
	rank := make([]float64, len(x))
	for i, v := range x {
		rank[i] = 0.5
		for _, u := range x {
			switch {
			case math.Abs(u) < math.Abs(v):
				rank[i]++
			case math.Abs(u) == math.Abs(v):
				rank[i] += 0.5
			}
		}
	}
	stat := func(m uint) float64 {
		var s float64
		for i := range x {
			if m>>i&1 == 1 {
				s += rank[i]
			} else {
				s -= rank[i]
			}
		}
		return math.Abs(s)
	}
	var seen uint
	for i, v := range x {
		if v > 0 {
			seen |= 1 << i
		}
	}
	extreme := 0
	for m := range uint(1) << len(x) {
		if stat(m) >= stat(seen)-1e-9 {
			extreme++
		}
	}
	return float64(extreme) / float64(uint(1)<<len(x))
}

// Published example: Hollander & Wolfe, table 3.1, depression scale factors
// (R: wilcox.test(x, y, paired=TRUE, conf.int=TRUE) gives V = 40,
// p = 0.03906, pseudo-median 0.46, interval 0.010 to 0.786).
func TestHollanderWolfe(t *testing.T) {
	x := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	y := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	d := make([]float64, len(x))
	for i := range d {
		d[i] = x[i] - y[i]
	}
	if p := SignedRankP(d); math.Abs(p-0.0390625) > 1e-9 {
		t.Errorf("p = %v, want 0.0390625", p)
	}
	if hl := HodgesLehmann(d); math.Abs(hl-0.46) > 0.0005 {
		t.Errorf("pseudo-median = %v, want 0.46", hl)
	}
	c, ok := SignedRankInterval(d, 0.95)
	if !ok || math.Abs(c.Lo-0.010) > 0.0005 || math.Abs(c.Hi-0.786) > 0.0006 {
		t.Errorf("interval = %+v, want 0.010 to 0.786", c)
	}
	if s := CountSigns(d); s != (Signs{7, 2, 0}) {
		t.Errorf("signs = %+v", s)
	}
}

// The interval is the test turned round: 0 lies outside exactly when the test
// rejects at one minus the attained level.
func TestIntervalIsTheTestInverted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.Float64Range(-1, 1), 6, 14).Draw(t, "d")
		shift := rapid.Float64Range(-1, 1).Draw(t, "shift")
		seen := map[float64]bool{}
		for i := range d {
			d[i] += shift
			if seen[math.Abs(d[i])] || d[i] == 0 {
				t.Skip("tied")
			}
			seen[math.Abs(d[i])] = true
		}
		c, _ := SignedRankInterval(d, 0.95)
		rejects := SignedRankP(d) <= 1-c.Level+1e-12
		if c.Contains(0) == rejects {
			t.Fatalf("interval %+v and p %v disagree", c, SignedRankP(d))
		}
	})
}

func TestWalshAverages(t *testing.T) {
	got := WalshAverages([]float64{3, 1, 2})
	if want := []float64{1, 1.5, 2, 2, 2.5, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !math.IsNaN(HodgesLehmann(nil)) {
		t.Error("the median of nothing is not a number")
	}
}

func TestSignP(t *testing.T) {
	for _, c := range []struct {
		s    Signs
		want float64
	}{
		{Signs{6, 0, 0}, 0.03125},
		{Signs{1, 9, 0}, 0.021484375},
		{Signs{4, 4, 0}, 1},
		{Signs{0, 0, 5}, 1},
		{Signs{7, 1, 3}, 0.0703125},
	} {
		if got := c.s.P(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v: p = %v, want %v", c.s, got, c.want)
		}
	}
	for k := range 11 {
		s := Signs{Positive: k, Negative: 10 - k}
		n := 0
		for m := range uint(1) << 10 {
			if b := bits.OnesCount(m); min(b, 10-b) <= min(k, 10-k) {
				n++
			}
		}
		if got := s.P(); math.Abs(got-float64(n)/1024) > 1e-12 {
			t.Errorf("%+v: p = %v, want %v", s, got, float64(n)/1024)
		}
	}
}

func TestHolm(t *testing.T) {
	for _, c := range []struct {
		p    []float64
		m    int
		want []float64
	}{
		{[]float64{0.01, 0.04, 0.03, 0.005}, 4, []float64{0.03, 0.06, 0.06, 0.02}},
		{[]float64{0.01, 0.04}, 4, []float64{0.04, 0.12}}, // two never ran
		{[]float64{0.5, 0.6}, 2, []float64{1, 1}},
		{nil, 3, []float64{}},
	} {
		got := Holm(c.p, c.m)
		for i := range c.want {
			if math.Abs(got[i]-c.want[i]) > 1e-12 {
				t.Errorf("Holm(%v, %d) = %v, want %v", c.p, c.m, got, c.want)
				break
			}
		}
	}
}

func TestFeasible(t *testing.T) {
	for n, want := range map[int]int{5: 0, 6: 1, 7: 3, 8: 6, 9: 12, 10: 25} {
		if got := MaxFamily(n, 0.05); got != want {
			t.Errorf("MaxFamily(%d) = %d, want %d", n, got, want)
		}
		if Feasible(n, want+1, 0.05) || (want > 0 && !Feasible(n, want, 0.05)) {
			t.Errorf("Feasible(%d) does not turn at %d", n, want)
		}
		if want > 0 && MinPairs(want, 0.05) != n {
			t.Errorf("MinPairs(%d) = %d, want %d", want, MinPairs(want, 0.05), n)
		}
	}
}

// Power 80 % needs about 1.75 sd with 6 pairs, 1.3 with 8, 1.0 with 10; and an
// independent simulation at that effect must find it that often.
func TestMDE(t *testing.T) {
	for n, want := range map[int]float64{6: 1.75, 8: 1.3, 10: 1.0} {
		got := MDE(1, n, 0.95, 0.8)
		if math.Abs(got-want) > 0.12 {
			t.Errorf("MDE of %d pairs = %.2f sd, want about %.2f", n, got, want)
		}
		rng, found := rand.New(rand.NewPCG(99, 1)), 0
		for range 3000 {
			d := make([]float64, n)
			for i := range d {
				d[i] = got + rng.NormFloat64()
			}
			if c, _ := SignedRankInterval(d, 0.95); c.Lo > 0 {
				found++
			}
		}
		if power := float64(found) / 3000; math.Abs(power-0.8) > 0.035 {
			t.Errorf("%d pairs: power at the MDE = %.3f", n, power)
		}
	}
	if !math.IsInf(MDE(1, 5, 0.95, 0.8), 1) {
		t.Error("five pairs can find nothing at 95 %")
	}
}

func TestDriftFindsTheSlope(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var steady, drifting []Observation
	for i := range 24 {
		o := Observation{Run: i, Block: i / 2, Pos: i % 2, Arm: []string{"a", "b"}[(i+i/2)%2], LogRate: 0.01 * rng.NormFloat64()}
		if o.Arm == "b" {
			o.LogRate += 0.3
		}
		steady = append(steady, o)
		o.LogRate -= 0.01 * float64(i)
		drifting = append(drifting, o)
	}
	s, ok := Drift(steady, 0.95)
	if !ok || !s.Contains(0) || s.Level < 0.95 {
		t.Errorf("steady: %+v", s)
	}
	s, ok = Drift(drifting, 0.95)
	if !ok || !s.Contains(-0.01) || s.Contains(0) || math.Abs(s.Estimate+0.01) > 0.002 {
		t.Errorf("drifting: %+v", s)
	}
	if _, ok := Drift(steady[:3], 0.95); ok {
		t.Error("three runs cannot give a 95 % slope")
	}
}

// Kendall's null distribution against published critical values: for n = 10,
// P(inversions <= 9) = 0.0083 and <= 11 is 0.0233.
func TestInversionCounts(t *testing.T) {
	p := inversionCounts(10)
	if got := tail(p, 11); math.Abs(got-0.0233) > 0.0001 {
		t.Errorf("P(I<=11) = %v", got)
	}
	if got := tail(p, 9); math.Abs(got-0.0083) > 0.0001 {
		t.Errorf("P(I<=9) = %v", got)
	}
}

func TestSlotEffectAndNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var obs []Observation
	var d []float64
	var armFirst []bool
	for b := range 12 {
		var rate [2]float64 // a, b
		order := []int{0, 1}
		if b%2 == 1 {
			order = []int{1, 0}
		}
		for pos, arm := range order {
			rate[arm] = 0.2*float64(arm) + 0.01*rng.NormFloat64()
			if pos == 0 {
				rate[arm] -= 0.05 // the first of each block is 5 % slower
			}
			obs = append(obs, Observation{Run: 2*b + pos, Block: b, Pos: pos, Arm: string(rune('a' + arm)), LogRate: rate[arm]})
		}
		d = append(d, rate[1]-rate[0])
		armFirst = append(armFirst, b%2 == 1)
	}
	s, ok := SlotEffect(obs, 0.95)
	if !ok || !s.Contains(-0.05) || s.Contains(0) {
		t.Errorf("slot effect %+v, want -0.05", s)
	}
	raw, net := StdDev(d), PairNoise(d, armFirst)
	if raw < 0.045 || net > 0.025 {
		t.Errorf("noise %v raw, %v without the slot effect; want about 0.05 and 0.014", raw, net)
	}
}
