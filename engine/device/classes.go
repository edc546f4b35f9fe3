package device

import (
	"cmp"
	"context"
	"slices"

	"github.com/bmoe/bmoe/engine/internal/llama"
)

// measureClasses times the experts' other shapes one token wide and puts rates
// over all of them in the place of the main shape's: kernels differ by type and,
// for short rows, by shape, and a token goes through every class.
func measureClasses(ctx context.Context, r *Report, s Spec) {
	if len(s.Bytes) != len(s.Classes) || r.Narrow == nil {
		return
	}
	order := make([]int, len(s.Classes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.Bytes[b], s.Bytes[a]) })
	var plain, packed mix
	for n, i := range order {
		p, k := r.Narrow, r.NarrowRepack
		if s.Classes[i] != s.Shape && n < mostClasses {
			if q, l := s.narrow(ctx, s.Classes[i]); q != nil {
				p, k = q, l
			}
		}
		if k == nil {
			k = p // a class without another layout stays as it is
		}
		plain.add(p, s.Bytes[i])
		packed.add(k, s.Bytes[i])
	}
	r.Narrow = plain.rate(r.Narrow)
	if r.NarrowRepack != nil {
		r.NarrowRepack = packed.rate(r.NarrowRepack)
	}
}

// measureDense times the matrix that speaks for what is read whole.
func measureDense(ctx context.Context, r *Report, s Spec) {
	if s.Dense.Slice > 0 {
		r.Dense, r.DenseRepack = s.narrow(ctx, s.Dense)
	}
}

// narrow is a shape's one-token rate in both layouts; nil where there is none.
func (s Spec) narrow(ctx context.Context, shape Shape) (plain, packed *Rate) {
	s.Shape = shape
	m, err := llama.NewMatmul("CPU", shape.matmul(s.layout()), s.Threads)
	if err != nil {
		return nil, nil
	}
	defer m.Close()
	experts, tensors := s.layout()
	one := func() *Rate {
		r, err := rate(ctx, m, experts/shape.Used*tensors, 1, shape.Used, experts, float64(s.bytes()), reference)
		if err != nil {
			return nil
		}
		return r
	}
	plain = one()
	if m.Repack() {
		packed = one()
	}
	return plain, packed
}

// mix is the rate of bytes that go through several kernels in turn: seconds add
// up, rates do not.
type mix struct{ bytes, seconds, spread, nmse float64 }

func (x *mix) add(r *Rate, bytes int64) {
	x.bytes += float64(bytes)
	x.seconds += float64(bytes) / r.BytesPerS
	x.spread = max(x.spread, r.Spread)
	x.nmse = max(x.nmse, r.NMSE)
}

// rate is the mix's, or def where nothing was added.
func (x *mix) rate(def *Rate) *Rate {
	if x.seconds <= 0 {
		return def
	}
	return &Rate{BytesPerS: x.bytes / x.seconds, Spread: x.spread, NMSE: x.nmse}
}
