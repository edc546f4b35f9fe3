package probes

import (
	"runtime"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/mem"
)

// systemRAM and systemCores answer where the kernel publishes no files.
func systemRAM() (int64, bool) {
	v, err := mem.VirtualMemory()
	if err != nil || v.Total == 0 {
		return 0, false
	}
	return int64(v.Total), true
}

func systemCores() (cores, threads int) {
	cores, threads = runtime.NumCPU(), runtime.NumCPU()
	if n, err := cpu.Counts(false); err == nil && n > 0 {
		cores = n
	}
	return cores, threads
}
