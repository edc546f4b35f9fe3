package probes

import (
	"context"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"github.com/bmoe/bmoe/results/record"
)

// ramGrain is what installed memory is rounded to: the kernel keeps a little
// for itself, and not the same amount after an update.
const ramGrain = 64 << 20

// Machine identifies this machine by its stable facts.
func Machine(_ context.Context) record.Machine { return Local().Machine() }

// Machine identifies a machine by what stays after a reboot and an update.
func (h *Host) Machine() record.Machine {
	m := record.Machine{OS: h.OS, Arch: h.Arch, CPU: h.cpuName()}
	m.Cores, m.Threads = h.coreCount()
	if total, ok := h.ramTotal(); ok {
		m.RAMBytes = (total + ramGrain/2) / ramGrain * ramGrain
	}
	m.Storage = h.rootDrive()
	m.ID = m.ContentID()
	return m
}

func (h *Host) ramTotal() (int64, bool) {
	if info, err := h.keyedFile("/proc/meminfo"); err == nil {
		return info.first("MemTotal")
	}
	if !h.local {
		return 0, false
	}
	return systemRAM()
}

// cpuName is the processor's own name: from the kernel, from the processor, or
// from the board.
func (h *Host) cpuName() string {
	if text, err := h.read("/proc/cpuinfo"); err == nil {
		for _, key := range []string{"model name", "Hardware", "cpu model", "Processor"} {
			if v, ok := colonValue(text, key); ok {
				return v
			}
		}
	}
	if board, err := h.word("/sys/firmware/devicetree/base/model"); err == nil {
		return strings.Trim(board, "\x00")
	}
	if !h.local {
		return ""
	}
	return strings.TrimSpace(cpuid.CPU.BrandName)
}

// colonValue finds the first "key : value" line.
func colonValue(text, key string) (string, bool) {
	for line := range strings.Lines(text) {
		k, v, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(k) == key {
			if v = strings.TrimSpace(v); v != "" {
				return v, true
			}
		}
	}
	return "", false
}

// rootDrive names the drive under the root file system, where it says.
func (h *Host) rootDrive() string {
	mounts, err := h.mounts()
	if err != nil {
		return ""
	}
	for _, m := range mounts {
		if m.point == "/" && !strings.HasPrefix(m.dev, "0:") {
			if name := h.driveModel(m.dev); name != "" {
				return name
			}
			return path.Base(m.source)
		}
	}
	return ""
}

// driveModel is what a block device (major:minor) says it is; a partition's
// drive is one folder up.
func (h *Host) driveModel(dev string) string {
	base := "/sys/dev/block/" + dev
	for _, dir := range []string{base + "/device", base + "/../device"} {
		for _, file := range []string{"model", "name"} {
			if text, err := h.word(path.Join(dir, file)); err == nil {
				return text
			}
		}
	}
	return ""
}

// coreCount returns physical cores and hardware threads of the machine.
func (h *Host) coreCount() (cores, threads int) {
	seen := map[string]bool{}
	for _, cpu := range h.cpus() {
		dir := "/sys/devices/system/cpu/cpu" + strconv.Itoa(cpu) + "/topology/"
		core, err1 := h.word(dir + "core_id")
		pkg, err2 := h.word(dir + "physical_package_id")
		threads++
		if err1 == nil && err2 == nil {
			seen[pkg+":"+core] = true
		}
	}
	if threads == 0 && h.local {
		return systemCores()
	}
	if len(seen) == 0 {
		return threads, threads
	}
	return len(seen), threads
}

// cpus lists the processors that exist.
func (h *Host) cpus() []int {
	for _, file := range []string{"present", "online", "possible"} {
		if text, err := h.word("/sys/devices/system/cpu/" + file); err == nil {
			if list, ok := parseList(text); ok {
				return list
			}
		}
	}
	return nil
}

// parseList reads the kernel's "0-3,8" notation.
func parseList(text string) ([]int, bool) {
	const most = 1 << 14
	var out []int
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(lo)
		if err != nil || a < 0 {
			return nil, false
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(hi); err != nil {
				return nil, false
			}
		}
		if b < a || b-a > most || len(out) > most {
			return nil, false
		}
		for n := a; n <= b; n++ {
			out = append(out, n)
		}
	}
	return out, len(out) > 0
}
