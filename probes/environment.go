package probes

import (
	"context"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/bmoe/bmoe/results/record"
)

// Environment reads what may differ from run to run: memory, load, heat,
// pressure, and how much of the model the page cache holds. modelPath may be
// empty. It takes a few milliseconds and changes nothing.
func Environment(ctx context.Context, modelPath string) record.Environment {
	return Local().Environment(ctx, modelPath)
}

// Environment is the function of the same name, on any host. What cannot be
// read stays zero, and CachedModelFrac -1.
func (h *Host) Environment(_ context.Context, modelPath string) record.Environment {
	r := h.readMemory()
	e := record.Environment{At: h.Now().UTC(), CachedModelFrac: -1}
	e.Kernel, _ = h.word("/proc/sys/kernel/osrelease")
	e.MemAvailable = available(r).Or(0)
	e.SwapUsed = max(0, r.meminfo["SwapTotal"]-r.meminfo["SwapFree"])
	if low, ok := r.limits.lowest(); ok {
		e.CgroupLimit = low.Bytes
	}
	e.Load1 = h.load1()
	e.TempC = h.temperature().Or(0)
	e.FreqMHz = h.frequency().Or(0)
	e.Governor = h.governor().Or("")
	e.THP = h.hugePages()
	e.PSIMem, e.MemWaited = h.pressure("memory")
	e.PSIIO, e.IOWaited = h.pressure("io")
	if modelPath != "" {
		h.fileEnvironment(&e, modelPath)
	}
	return e
}

func (h *Host) fileEnvironment(e *record.Environment, modelPath string) {
	if shards, err := shardsOf(modelPath); err == nil {
		e.CachedModelFrac = cachedFraction(shards)
	}
	place, err := placeOf(modelPath)
	if err != nil {
		return
	}
	e.FileSystem = place.name
	if kb, err := h.number("/sys/class/bdi/" + place.dev + "/read_ahead_kb"); err == nil {
		e.ReadAheadKB = kb
	}
}

func (h *Host) load1() float64 {
	text, err := h.word("/proc/loadavg")
	if err != nil {
		return 0
	}
	load, _ := strconv.ParseFloat(strings.Fields(text)[0], 64)
	return load
}

// hugePages is the choice in brackets: "always [madvise] never".
func (h *Host) hugePages() string {
	text, err := h.word("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil {
		return ""
	}
	_, rest, ok := strings.Cut(text, "[")
	choice, _, closed := strings.Cut(rest, "]")
	if !ok || !closed {
		return ""
	}
	return choice
}

// pressure is the share of time, percent over ten seconds, in which some task
// waited for a resource, and for how long some did since the system started.
func (h *Host) pressure(what string) (share float64, total time.Duration) {
	text, err := h.word(path.Join("/proc/pressure", what))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "some" {
			continue
		}
		for _, f := range fields[1:] {
			switch name, value, _ := strings.Cut(f, "="); name {
			case "avg10":
				share, _ = strconv.ParseFloat(value, 64)
			case "total":
				us, _ := strconv.ParseInt(value, 10, 64)
				total = time.Duration(us) * time.Microsecond
			}
		}
	}
	return share, total
}
