package probes

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/planner"
)

const (
	cpuDir   = "/sys/devices/system/cpu/"
	owedCore = "a thread sweep: `bmoe sweep --lever threads`"
)

// Cores reads what the machine says about its processors. The facts are
// printed and decide nothing alone: thread counts derived from core classes
// were slower than the default where they were tried.
func (h *Host) Cores() planner.CoreFacts {
	start := h.Now()
	var f planner.CoreFacts
	f.Classes = h.coreClasses()
	if len(h.cpus()) > 0 || h.OS != "linux" {
		cores, threads := h.coreCount()
		f.Physical = planner.MeasuredFact(int64(cores), 0, fmt.Sprintf("%d hardware threads", threads))
	} else {
		f.Physical = planner.UnknownFact[int64]("/sys lists no processors", owedCore)
	}
	f.NUMA = h.numaNodes()
	f.Governor = h.governor()
	f.TempC = h.temperature()
	f.FreqMHz = h.frequency()
	at, each := stamp(start), h.since(start)/6
	f.Classes, f.Physical, f.NUMA = f.Classes.Timed(each, at), f.Physical.Timed(each, at), f.NUMA.Timed(each, at)
	f.Governor, f.TempC, f.FreqMHz = f.Governor.Timed(each, at), f.TempC.Timed(each, at), f.FreqMHz.Timed(each, at)
	return f
}

// coreClasses groups the processors by the scheduler's capacity, else by the
// highest frequency; with neither they cannot be told apart.
func (h *Host) coreClasses() planner.Fact[[]planner.CoreClass] {
	type key struct {
		capacity int
		mhz      float64
	}
	count := map[key]int{}
	for _, cpu := range h.cpus() {
		dir := cpuDir + "cpu" + strconv.Itoa(cpu) + "/"
		capacity, _ := h.number(dir + "cpu_capacity")
		khz, _ := h.number(dir + "cpufreq/cpuinfo_max_freq")
		count[key{int(capacity), float64(khz) / 1000}]++
	}
	delete(count, key{})
	if len(count) == 0 {
		return planner.UnknownFact[[]planner.CoreClass]("neither capacity nor highest frequency is published", owedCore)
	}
	var classes []planner.CoreClass
	for k, n := range count {
		classes = append(classes, planner.CoreClass{Cores: n, MaxMHz: k.mhz, Capacity: k.capacity})
	}
	slices.SortFunc(classes, func(a, b planner.CoreClass) int {
		return cmp.Or(cmp.Compare(b.Capacity, a.Capacity), cmp.Compare(b.MaxMHz, a.MaxMHz), cmp.Compare(a.Cores, b.Cores))
	})
	return planner.MeasuredFact(classes, 0, "hardware threads by scheduler capacity and highest frequency")
}

func (h *Host) numaNodes() planner.Fact[int64] {
	var n int64
	for _, name := range h.list("/sys/devices/system/node") {
		id, ok := strings.CutPrefix(name, "node")
		if _, err := strconv.Atoi(id); ok && err == nil {
			n++
		}
	}
	if n == 0 {
		return planner.UnknownFact[int64]("/sys lists no memory nodes", "llama.cpp's --numa on this machine, compared")
	}
	return planner.MeasuredFact(n, 0, "memory nodes in /sys/devices/system/node")
}

func (h *Host) governor() planner.Fact[string] {
	var seen []string
	for _, cpu := range h.cpus() {
		g, err := h.word(cpuDir + "cpu" + strconv.Itoa(cpu) + "/cpufreq/scaling_governor")
		if err == nil && !slices.Contains(seen, g) {
			seen = append(seen, g)
		}
	}
	if len(seen) == 0 {
		return planner.UnknownFact[string]("no frequency governor is published", "frequency scaling visible to this system")
	}
	return planner.MeasuredFact(strings.Join(seen, "+"), 0, "scaling_governor of every processor")
}

// frequency is the mean over processors, MHz.
func (h *Host) frequency() planner.Fact[float64] {
	var sum float64
	var n int
	for _, cpu := range h.cpus() {
		khz, err := h.number(cpuDir + "cpu" + strconv.Itoa(cpu) + "/cpufreq/scaling_cur_freq")
		if err == nil && khz > 0 {
			sum, n = sum+float64(khz)/1000, n+1
		}
	}
	if n > 0 {
		return planner.MeasuredFact(sum/float64(n), 0, "mean scaling_cur_freq")
	}
	text, _ := h.read("/proc/cpuinfo")
	for line := range strings.Lines(text) {
		k, v, _ := strings.Cut(line, ":")
		mhz, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if strings.TrimSpace(k) == "cpu MHz" && err == nil && mhz > 0 {
			sum, n = sum+mhz, n+1
		}
	}
	if n > 0 {
		return planner.MeasuredFact(sum/float64(n), 0, "mean cpu MHz of /proc/cpuinfo; a virtual machine may show its nominal one")
	}
	return planner.UnknownFact[float64]("no processor frequency is published", "frequency scaling visible to this system")
}

// temperature is the hottest processor zone, degrees Celsius; where no zone is
// called a processor's, the hottest of all.
func (h *Host) temperature() planner.Fact[float64] {
	const zones = "/sys/class/thermal/"
	best, bestCPU, name := 0.0, false, ""
	for _, zone := range h.list(zones) {
		if !strings.HasPrefix(zone, "thermal_zone") {
			continue
		}
		milli, err := h.number(zones + zone + "/temp")
		if err != nil || milli <= 0 || milli > 200_000 {
			continue
		}
		kind, _ := h.word(zones + zone + "/type")
		isCPU := strings.Contains(kind, "pkg_temp") || strings.Contains(strings.ToLower(kind), "cpu") || strings.Contains(kind, "soc")
		c := float64(milli) / 1000
		if (isCPU && !bestCPU) || (isCPU == bestCPU && c > best) {
			best, bestCPU, name = c, isCPU, kind
		}
	}
	if name == "" && best == 0 {
		return planner.UnknownFact[float64]("no thermal zone is readable", "a sensor this system shows")
	}
	return planner.MeasuredFact(best, 0, "hottest thermal zone ("+name+")")
}
