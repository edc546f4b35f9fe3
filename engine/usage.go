package engine

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/engine/counters"
)

// usage is what the kernel says this process holds and has waited for.
type usage struct {
	majorFaults int64
	rss, peak   int64
}

// readUsage reads getrusage and, where there is one, /proc/self/status.
func readUsage() usage {
	var u usage
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) == nil {
		u.majorFaults = ru.Majflt
		u.peak = ru.Maxrss << 10
	}
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return u
	}
	u.rss = statusKB(raw, "VmRSS:") << 10
	if hwm := statusKB(raw, "VmHWM:") << 10; hwm > 0 {
		u.peak = hwm
	}
	return u
}

// statusKB finds a line "NAME   N kB" of /proc/self/status; 0 if it is not there.
func statusKB(status []byte, name string) int64 {
	_, rest, ok := bytes.Cut(status, []byte(name))
	if !ok {
		return 0
	}
	line, _, _ := strings.Cut(string(rest[:min(len(rest), 64)]), "\n")
	n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(line), " kB"), 10, 64)
	return n
}

// Counters are the session's totals so far.
func (s *Session) Counters() counters.Counters {
	var c counters.Counters
	if s.stream != nil {
		c = s.stream.Counters()
		c.HookInGraph, c.HookInGraphReads = s.hook.Calls()
	}
	if s.placed != nil {
		c.DevicePlacedBytes = s.placed.bytes
	}
	s.reserved(&c)
	u := readUsage()
	c.MajorFaults = u.majorFaults - s.start.majorFaults
	c.RSSBytes, c.PeakRSS = u.rss, u.peak
	c.DecodeTokens, c.PrefillTokens = s.decode.tokens, s.decode.prompt
	c.ComputeThreads, c.PrefillGraphs = int64(s.cfg.Threads), s.decode.wide
	waits := c.WaitRouteS + c.WaitGateS + c.WaitUpS + c.WaitDownS
	c.ComputeS = max(0, s.decode.graphS-waits-c.ManageS)
	if s.dense != nil {
		c.DenseBytes, c.DenseCopiedBytes = s.dense.bytes, int64(s.dense.off)
		c.DenseLockedBytes, c.DensePinRefusedBytes = s.dense.locked, s.dense.refused
		c.MmapReleasedBytes = s.dense.released
		c.DenseRepacked = s.dense.repacked
	}
	c.MmapRandomBytes = s.advised
	return c
}
