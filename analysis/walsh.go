package analysis

import "math"

// maxListed bounds the differences whose Walsh averages are listed: they grow
// with the square, and a ledger of 20,000 predictions would have 200 million.
const maxListed = 500

// walshAt returns the k-th smallest of the Walsh averages of s, which is in
// ascending order, without listing them: it halves the range of floats between
// the least and the greatest and counts the averages below.
func walshAt(s []float64, k int) float64 {
	lo, hi := ordinal(s[0]), ordinal(s[len(s)-1])
	for lo < hi {
		mid := lo + (hi-lo)/2
		if walshCount(s, fromOrdinal(mid)) >= k {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return fromOrdinal(lo) + 0 // never -0
}

// walshCount counts the Walsh averages of s, in ascending order, up to x.
func walshCount(s []float64, x float64) (n int) {
	j := len(s) - 1
	for i := range s {
		for j >= i && (s[i]+s[j])/2 > x {
			j--
		}
		if j < i {
			break
		}
		n += j - i + 1
	}
	return n
}

// ordinal numbers the floats in ascending order.
func ordinal(x float64) uint64 {
	b := math.Float64bits(x)
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}

func fromOrdinal(n uint64) float64 {
	if n>>63 == 1 {
		return math.Float64frombits(n &^ (1 << 63))
	}
	return math.Float64frombits(^n)
}
