package probes

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/planner"
)

// swapDevice is one line of /proc/swaps. Sizes are bytes.
type swapDevice struct {
	name     string
	size     int64
	used     int64
	priority int
}

// compressed reports whether pages swapped there stay in memory.
func (s swapDevice) compressed() bool { return strings.HasPrefix(path.Base(s.name), "zram") }

// swaps lists the swap devices, none where there is no swap.
func (h *Host) swaps() ([]swapDevice, error) {
	text, err := h.read("/proc/swaps")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(text, "Filename") {
		return nil, errors.New("/proc/swaps does not begin with its header")
	}
	var out []swapDevice
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 || f[0] == "Filename" {
			continue
		}
		size, err1 := strconv.ParseInt(f[2], 10, 64)
		used, err2 := strconv.ParseInt(f[3], 10, 64)
		priority, err3 := strconv.Atoi(f[4])
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
		out = append(out, swapDevice{unescape(f[0]), size << 10, used << 10, priority})
	}
	return out, nil
}

// firstSwap is the device the kernel fills first.
func firstSwap(list []swapDevice) (swapDevice, bool) {
	var best swapDevice
	for i, s := range list {
		if i == 0 || s.priority > best.priority {
			best = s
		}
	}
	return best, len(list) > 0
}

// reclaim says what happens to anonymous memory under pressure.
func (h *Host) reclaim(r memoryReading) planner.Fact[planner.Reclaim] {
	if r.limits.problem != nil {
		return planner.UnknownFact[planner.Reclaim](r.limits.problem.Error(), owedMemory)
	}
	if r.swapErr != nil {
		return planner.UnknownFact[planner.Reclaim](r.swapErr.Error(), owedMemory)
	}
	if r.infoErr != nil && len(r.swaps) == 0 {
		return planner.UnknownFact[planner.Reclaim](r.infoErr.Error(), owedMemory)
	}
	swap, any := firstSwap(r.swaps)
	if any && r.limits.swapRoom > 0 {
		return h.swapReclaim(swap, r)
	}
	for _, l := range r.limits.all {
		if total, ok := r.meminfo["MemTotal"]; l.Hard && (!ok || l.Bytes < total) {
			return planner.MeasuredFact(planner.ReclaimKill, 0, "no swap to go to, and "+l.Name+" ends what exceeds it")
		}
	}
	return planner.MeasuredFact(planner.ReclaimNone, 0, "no swap and no limit of this process's own: anonymous memory is not taken back")
}

func (h *Host) swapReclaim(swap swapDevice, r memoryReading) planner.Fact[planner.Reclaim] {
	if swap.compressed() {
		return planner.MeasuredFact(planner.ReclaimCompress, 0, "swap goes to "+path.Base(swap.name)+", a compressed device in memory")
	}
	if !r.limits.noZswap && h.zswapOn() {
		return planner.MeasuredFact(planner.ReclaimCompress, 0, "zswap compresses pages before they reach "+swap.name)
	}
	return planner.MeasuredFact(planner.ReclaimSwap, 0, "swap is on "+swap.name)
}

func (h *Host) zswapOn() bool {
	on, err := h.word("/sys/module/zswap/parameters/enabled")
	return err == nil && (on == "Y" || on == "1")
}
