package device

import (
	"math"
	"testing"
)

func spec(typ uint32, slice int64) Spec {
	shape := Shape{Type: typ, Cols: 512, Rows: 512, Experts: 64, Used: 8, Slice: slice}
	return Spec{Shape: shape, Classes: []Shape{shape}, Threads: 2, Sweep: 16 << 20}
}

func TestHostAgreesWithPlainFloats(t *testing.T) {
	tests := []struct {
		name  string
		typ   uint32
		slice int64
	}{
		{"f32", 0, 512 * 512 * 4},
		{"f16", 1, 512 * 512 * 2},
		{"q4_0", 2, 512 * 512 / 32 * 18},
		{"q8_0", 8, 512 * 512 / 32 * 34},
		{"q4_K", 12, 512 * 512 / 256 * 144},
		{"q6_K", 14, 512 * 512 / 256 * 210},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Measure(t.Context(), "CPU", spec(tt.typ, tt.slice))
			if err != nil {
				t.Fatal(err)
			}
			for name, rate := range map[string]*Rate{"narrow": r.Narrow, "wide": r.Wide, "narrow repack": r.NarrowRepack, "wide repack": r.WideRepack} {
				if rate == nil {
					if name == "narrow" || name == "wide" || r.Why["narrow-repack"] == "" {
						t.Errorf("%s: not measured (%v)", name, r.Why)
					}
					continue
				}
				if rate.NMSE > 5e-4 || rate.BytesPerS < 1e6 || rate.BytesPerS > 1e13 {
					t.Errorf("%s: %+v", name, rate)
				}
			}
			if len(r.Repacks) != 1 || r.Repacks[0] != (r.NarrowRepack != nil) {
				t.Errorf("repacks %v, repacked rate %v", r.Repacks, r.NarrowRepack)
			}
			if !r.RunsAll || r.Info.Kind != CPU || r.CopyRate <= 0 {
				t.Errorf("report %+v", r)
			}
			t.Logf("narrow %+v wide %+v repacked %+v %+v copy %.3g", r.Narrow, r.Wide, r.NarrowRepack, r.WideRepack, r.CopyRate)
		})
	}
}

func TestUnknownDeviceIsAnError(t *testing.T) {
	if _, err := Measure(t.Context(), "Nonesuch0", spec(2, 147456)); err == nil {
		t.Error("a device that is not there was measured")
	}
}

func TestNMSE(t *testing.T) {
	tests := []struct {
		want, got []float32
		nmse      float64
	}{
		{[]float32{1, 2, 2}, []float32{1, 2, 2}, 0},
		{[]float32{3, 4}, []float32{3, 3.5}, 0.01},
		{[]float32{3, 4}, []float32{0, 0}, 1},
		{[]float32{3, 4}, []float32{-3, -4}, 4},
		{[]float32{0, 0}, []float32{1, 0}, math.Inf(1)},
		{[]float32{1}, []float32{float32(math.NaN())}, math.Inf(1)},
		{[]float32{1}, []float32{1, 2}, math.Inf(1)},
		{nil, nil, math.Inf(1)},
	}
	for _, tt := range tests {
		if got := NMSE(tt.want, tt.got); math.Abs(got-tt.nmse) > 1e-9 && got != tt.nmse {
			t.Errorf("NMSE(%v, %v) = %g, want %g", tt.want, tt.got, got, tt.nmse)
		}
	}
}

func TestWideIsScaledDownWithItsExperts(t *testing.T) {
	s := Spec{Shape: Shape{Cols: 4096, Rows: 1536, Experts: 128, Used: 8, Slice: 3538944}, Sweep: 256 << 20}
	used, of := s.wide()
	if used != 1 || of != 16 {
		t.Errorf("wide() = %d of %d, want 1 of 16: as many tokens for each expert as in the model", used, of)
	}
	if n, tensors := s.layout(); n != 72 || tensors != 1 {
		t.Errorf("layout() = %d, %d; want 72 experts of 3.4 MiB in 256 MiB", n, tensors)
	}
	if n, tensors := spec(2, 147456).layout(); n != 64 || tensors != 1 {
		t.Errorf("layout() = %d, %d", n, tensors)
	}
	many := spec(2, 1<<10)
	if n, tensors := many.layout(); n != 64 || tensors != 256 {
		t.Errorf("layout() = %d, %d; want the model's 64 experts in as many tensors as it takes", n, tensors)
	}
}

func TestMedianOfThirds(t *testing.T) {
	tests := []struct {
		times          []float64
		median, spread float64
	}{
		{[]float64{1, 1, 1}, 1, 0},
		{[]float64{1, 1, 9, 1, 1, 1, 1, 1, 1}, 1, 0},
		{[]float64{1, 1, 1, 2, 2, 2, 3, 3, 3}, 2, 1},
	}
	for _, tt := range tests {
		if m, s := medianOfThirds(tt.times); m != tt.median || s != tt.spread {
			t.Errorf("medianOfThirds(%v) = %g, %g; want %g, %g", tt.times, m, s, tt.median, tt.spread)
		}
	}
}
