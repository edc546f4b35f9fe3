package synth

// tensor is one tensor to write: what it is and how its bytes are made.
type tensor struct {
	name  string
	dims  []int64
	quant *quant
	src   source
}

// source makes the bytes of a tensor unit by unit, in any order.
type source interface {
	// fill makes unit number unit; every unit but the last is unitBytes long.
	fill(dst []byte, unit int)
	unitBytes() int64
}

func (t *tensor) rows() int64 {
	n := int64(1)
	for _, d := range t.dims[1:] {
		n *= d
	}
	return n
}

func (t *tensor) size() int64 { return t.rows() * t.quant.rowBytes(t.dims[0]) }

func (t *tensor) units() int {
	u := t.src.unitBytes()
	return int((t.size() + u - 1) / u)
}

// unitTarget is about how many bytes one unit has: large enough that handing
// it out costs nothing, small enough to stay in a core's cache.
const unitTarget = 1 << 19

// randomSource is random blocks of one type, the first zeroed bytes being 0.
type randomSource struct {
	seed   uint64
	name   string
	quant  *quant
	mend   mender
	zeroed int64
}

func (s *randomSource) unitBytes() int64 {
	return int64(unitTarget / s.quant.bytes * s.quant.bytes)
}

func (s *randomSource) fill(dst []byte, unit int) {
	r := newRNG(s.seed, s.name, unit)
	r.bytes(dst)
	s.mend(dst)
	if n := s.zeroed - int64(unit)*s.unitBytes(); n > 0 {
		clear(dst[:min(n, int64(len(dst)))])
	}
}

// rowSource encodes given values, row by row.
type rowSource struct {
	quant   *quant
	columns int64
	row     func(dst []float32, row int)
}

func (s *rowSource) perUnit() int64 {
	return max(1, unitTarget/s.quant.rowBytes(s.columns))
}

func (s *rowSource) unitBytes() int64 { return s.perUnit() * s.quant.rowBytes(s.columns) }

func (s *rowSource) fill(dst []byte, unit int) {
	n := s.quant.rowBytes(s.columns)
	values := make([]float32, s.columns)
	for row := int64(unit) * s.perUnit(); len(dst) > 0; row++ {
		clear(values)
		s.row(values, int(row))
		s.quant.encode(dst[:n], values)
		dst = dst[n:]
	}
}

// stripedSource is random blocks whose rows all begin with the same bytes.
type stripedSource struct {
	randomSource
	row    int64
	stripe []byte
}

func (s *stripedSource) unitBytes() int64 { return max(1, unitTarget/s.row) * s.row }

func (s *stripedSource) fill(dst []byte, unit int) {
	s.randomSource.fill(dst, unit)
	for ; len(dst) > 0; dst = dst[s.row:] {
		copy(dst, s.stripe)
	}
}
