package probes

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/bmoe/bmoe/planner"
)

const owedMemory = "read the memory accounting from an account that may (`bmoe probe` as another user)"

// memoryReading is the accounting of one moment, before it becomes facts.
type memoryReading struct {
	meminfo keyed
	infoErr error
	limits  limits
	swaps   []swapDevice
	swapErr error
}

func (h *Host) readMemory() memoryReading {
	r := memoryReading{limits: h.groupLimits()}
	r.meminfo, r.infoErr = h.keyedFile("/proc/meminfo")
	r.limits.all = append(r.limits.all, h.processLimits(r.meminfo)...)
	r.swaps, r.swapErr = h.swaps()
	return r
}

// Memory reads how much this process may hold and what takes it back. It
// allocates nothing and takes about a millisecond.
func (h *Host) Memory() planner.MemoryFacts {
	start := h.Now()
	r := h.readMemory()
	var f planner.MemoryFacts
	f.Total = fromMeminfo(r, "MemTotal", "installed, less what the kernel took at boot")
	f.Available = available(r)
	f.LimitBytes, f.LimitHeadroom = limitFacts(r.limits)
	f.Holdable = holdable(f, r)
	f.SwapFree = swapFree(r)
	f.Reclaim = h.reclaim(r)
	f.Estimate = h.headroomEstimate(r, f)
	f.Headroom = planner.UnknownFact[int64]("holding memory is intrusive and was not asked for", "--probe-mem (`bmoe probe --mem`)")
	f.PageSize = planner.MeasuredFact(h.PageSize, 0, "the kernel's page size")
	f.Overcommit = h.overcommit()
	stampMemory(&f, h, start)
	return f
}

func fromMeminfo(r memoryReading, name, how string) planner.Fact[int64] {
	if r.infoErr != nil {
		return planner.UnknownFact[int64](r.infoErr.Error(), owedMemory)
	}
	n, err := r.meminfo.need("/proc/meminfo", name)
	if err != nil {
		return planner.UnknownFact[int64](err.Error(), owedMemory)
	}
	return planner.MeasuredFact(n, 0, name+" of /proc/meminfo: "+how)
}

// available is MemAvailable; kernels before 3.14 do not have it, and free plus
// file cache stands in for it.
func available(r memoryReading) planner.Fact[int64] {
	f := fromMeminfo(r, "MemAvailable", "the kernel's estimate of what can be allocated without swapping")
	if f.OK() || r.infoErr != nil {
		return f
	}
	free, ok1 := r.meminfo["MemFree"]
	cached, ok2 := r.meminfo["Cached"]
	if !ok1 || !ok2 {
		return f
	}
	shmem := r.meminfo["Shmem"]
	return planner.DerivedFact(free+max(0, cached-shmem), "no MemAvailable here: MemFree plus file cache")
}

// tightest returns the limit that leaves the least room.
func (l limits) tightest() (Limit, bool) {
	var best Limit
	found := false
	for _, x := range l.all {
		if !found || x.Free() < best.Free() {
			best, found = x, true
		}
	}
	return best, found
}

// lowest returns the smallest limit, whatever is charged against it.
func (l limits) lowest() (Limit, bool) {
	var best Limit
	found := false
	for _, x := range l.all {
		if !found || x.Bytes < best.Bytes {
			best, found = x, true
		}
	}
	return best, found
}

func limitFacts(l limits) (bytes, headroom planner.Fact[int64]) {
	if l.problem != nil {
		why := "a limit exists and cannot be read: " + l.problem.Error()
		return planner.UnknownFact[int64](why, owedMemory), planner.UnknownFact[int64](why, owedMemory)
	}
	low, ok := l.lowest()
	if !ok {
		const none = "no control group up the hierarchy and no process limit bounds memory"
		return planner.MeasuredFact[int64](0, 0, none), planner.UnknownFact[int64](none, "")
	}
	tight, _ := l.tightest()
	return planner.MeasuredFact(low.Bytes, 0, low.Name),
		planner.MeasuredFact(tight.Free(), 0, fmt.Sprintf("%s: %s less (%s used less %s reclaimable file cache)",
			tight.Name, size(tight.Bytes), size(tight.Usage), size(tight.Reclaimable)))
}

// holdable is the residency budget: the smaller of what the machine has
// available and what the tightest limit leaves.
func holdable(f planner.MemoryFacts, r memoryReading) planner.Fact[int64] {
	avail, ok := f.Available.Get()
	if !ok {
		return planner.UnknownFact[int64]("what is available is unknown: "+f.Available.Reason, owedMemory)
	}
	if r.limits.problem != nil {
		return planner.UnknownFact[int64](f.LimitHeadroom.Reason, owedMemory)
	}
	room, limited := f.LimitHeadroom.Get()
	if limited && room < avail {
		return planner.MeasuredFact(room, 0, "bounded by "+f.LimitHeadroom.Reason)
	}
	return planner.MeasuredFact(avail, 0, f.Available.Reason)
}

func swapFree(r memoryReading) planner.Fact[int64] {
	f := fromMeminfo(r, "SwapFree", "unused swap of the whole machine")
	if n, ok := f.Get(); ok && r.limits.swapRoom < n {
		return planner.MeasuredFact(r.limits.swapRoom, 0, "a control group allows less swap than the machine has free")
	}
	return f
}

func (h *Host) overcommit() planner.Fact[string] {
	n, err := h.number("/proc/sys/vm/overcommit_memory")
	names := []string{"heuristic", "always", "never"}
	if err == nil && (n < 0 || int(n) >= len(names)) {
		err = fmt.Errorf("/proc/sys/vm/overcommit_memory holds %d, which has no meaning", n)
	}
	if err != nil {
		return planner.UnknownFact[string](err.Error(), owedMemory)
	}
	return planner.MeasuredFact(names[n], 0, "vm.overcommit_memory")
}

// stampMemory dates the facts and splits what the reading cost among them.
func stampMemory(f *planner.MemoryFacts, h *Host, start time.Time) {
	at, each := stamp(start), h.Now().Sub(start).Seconds()/11
	for _, x := range []*planner.Fact[int64]{&f.Total, &f.Holdable, &f.Available, &f.LimitBytes, &f.LimitHeadroom, &f.SwapFree, &f.Estimate, &f.Headroom, &f.PageSize} {
		*x = x.Timed(each, at)
	}
	f.Reclaim = f.Reclaim.Timed(each, at)
	f.Overcommit = f.Overcommit.Timed(each, at)
}

func size(n int64) string {
	if n < 0 {
		return "-" + size(-n)
	}
	return humanize.IBytes(uint64(n))
}
