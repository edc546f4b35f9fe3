package planner

import (
	"fmt"
	"math"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// size writes a number of bytes for people: MiB up to 10 GiB, then GiB.
func size(b int64) string {
	switch {
	case b >= 10*gib || b <= -10*gib:
		return fmt.Sprintf("%.1f GiB", float64(b)/float64(gib))
	case b >= mib || b <= -mib:
		return fmt.Sprintf("%.0f MiB", math.Floor(float64(b)/float64(mib)))
	case b >= 1024:
		return fmt.Sprintf("%.0f KiB", float64(b)/1024)
	}
	return fmt.Sprintf("%d B", b)
}

// rate writes bytes per second for people.
func rate(r float64) string {
	switch {
	case r >= 1e9:
		return fmt.Sprintf("%.1f GB/s", r/1e9)
	case r >= 1e6:
		return fmt.Sprintf("%.0f MB/s", r/1e6)
	}
	return fmt.Sprintf("%.0f kB/s", r/1e3)
}

// seconds writes a duration for people.
func seconds(s float64) string {
	switch {
	case s >= 1:
		return fmt.Sprintf("%.2f s", s)
	case s >= 1e-3:
		return fmt.Sprintf("%.1f ms", s*1e3)
	}
	return fmt.Sprintf("%.1f us", s*1e6)
}

// percent writes a fraction as a percentage.
func percent(f float64) string { return fmt.Sprintf("%.0f %%", f*100) }

// scale multiplies bytes by a fraction, rounding down.
func scale(b int64, f float64) int64 { return int64(math.Floor(float64(b) * f)) }

// wholeMiB rounds bytes down to whole MiB: what a size knob can say.
func wholeMiB(b int64) int64 {
	if b < 0 {
		return 0
	}
	return b / mib * mib
}
