package probes

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/planner"
)

// minCompressed is how much a compressor must be holding before its ratio says
// anything about this machine's pages.
const minCompressed = 16 << 20

// compressor is what a machine's own compression is achieving.
type compressor struct {
	stored int64 // bytes before
	taken  int64 // bytes of memory it uses for them
	room   int64 // bytes of pages it may still take in
	source string
}

func (c compressor) ratio() float64 { return float64(c.stored) / float64(c.taken) }

// headroomEstimate is the free answer to how much could be held and kept: what
// is available, plus what the idle anonymous pages of others would give up if
// they were compressed as well as the pages compressed so far. It holds only
// where a reclaim compresses, and never beyond a limit of our own.
func (h *Host) headroomEstimate(r memoryReading, f planner.MemoryFacts) planner.Fact[int64] {
	const owed = "--probe-mem (`bmoe probe --mem`)"
	kind, known := f.Reclaim.Get()
	if !known {
		return planner.UnknownFact[int64]("what a reclaim does here is unknown", owed)
	}
	if kind != planner.ReclaimCompress {
		return planner.UnknownFact[int64]("a reclaim does not compress here ("+string(kind)+"), so what others hold is not room", owed)
	}
	avail, ok := f.Available.Get()
	idle, idleOK := r.meminfo["Inactive(anon)"]
	if !ok || !idleOK {
		return planner.UnknownFact[int64]("the idle anonymous memory is not published", owed)
	}
	c, err := h.compressor(r)
	if err != nil {
		return planner.UnknownFact[int64](err.Error(), owed)
	}
	squeezed := min(idle, c.room)
	gain := int64(float64(squeezed) * (1 - 1/c.ratio()))
	total := avail + max(0, gain)
	how := fmt.Sprintf("%s available and %s of idle anonymous memory at the %.2f:1 that %s achieves", size(avail), size(squeezed), c.ratio(), c.source)
	if room, limited := f.LimitHeadroom.Get(); limited && room < total {
		return planner.DerivedFact(room, how+", bounded by "+f.LimitHeadroom.Reason)
	}
	return planner.DerivedFact(total, how)
}

// compressor reads the statistics of the compressed swap device, or of the
// compressed pool before a disk.
func (h *Host) compressor(r memoryReading) (compressor, error) {
	swap, ok := firstSwap(r.swaps)
	if !ok {
		return compressor{}, fmt.Errorf("no swap device is in use")
	}
	c := compressor{stored: r.meminfo["Zswapped"], taken: r.meminfo["Zswap"], source: "zswap"}
	c.room = min(r.meminfo["SwapFree"], r.limits.swapRoom)
	if swap.compressed() {
		stored, taken, err := h.zram(path.Base(swap.name))
		if err != nil {
			return compressor{}, err
		}
		c.stored, c.taken, c.source = stored, taken, path.Base(swap.name)
		c.room = min(swap.size-swap.used, r.limits.swapRoom)
	}
	if c.taken <= 0 || c.stored < minCompressed {
		return compressor{}, fmt.Errorf("%s holds %s so far: too little to know its ratio", c.source, size(c.stored))
	}
	if c.ratio() <= 1 {
		return compressor{}, fmt.Errorf("%s makes nothing smaller here (%.2f:1)", c.source, c.ratio())
	}
	return c, nil
}

// zram reads what a compressed block device stores and what it uses for it:
// the first and third numbers of its mm_stat.
func (h *Host) zram(name string) (stored, taken int64, err error) {
	file := "/sys/block/" + name + "/mm_stat"
	text, err := h.word(file)
	if err != nil {
		return 0, 0, fmt.Errorf("statistics of %s: %w", name, err)
	}
	f := strings.Fields(text)
	if len(f) < 3 {
		return 0, 0, fmt.Errorf("%s holds %q, not its statistics", file, clip(text))
	}
	stored, err1 := strconv.ParseInt(f[0], 10, 64)
	taken, err2 := strconv.ParseInt(f[2], 10, 64)
	if err1 != nil || err2 != nil || stored < 0 || taken < 0 {
		return 0, 0, fmt.Errorf("%s holds %q, not its statistics", file, clip(text))
	}
	return stored, taken, nil
}
