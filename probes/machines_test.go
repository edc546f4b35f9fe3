package probes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/bmoe/bmoe/planner"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// recorded is a machine from testdata/machines; edit changes its files first
// (nil removes one).
func recorded(t *testing.T, name string, edit map[string]*string) *Host {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "machines", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, f := range txtar.Parse(raw).Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	for name, text := range edit {
		if text == nil {
			if files[name] == nil {
				t.Fatalf("%s is not in the tree", name)
			}
			delete(files, name)
			continue
		}
		files[name] = &fstest.MapFile{Data: []byte(*text)}
	}
	page := int64(4096)
	arch := "amd64"
	if strings.HasPrefix(name, "board") {
		page, arch = 16384, "arm64"
	}
	return &Host{Files: files, OS: "linux", Arch: arch, PageSize: page, Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
}

// shown is a memory reading as a table can hold it: -1 is unknown.
type shown struct {
	Holdable, Available, Limit, Headroom, SwapFree, Estimate int64
	Reclaim                                                  planner.Reclaim
	Overcommit                                               string
	Page                                                     int64
}

func show(f planner.MemoryFacts) shown {
	return shown{
		f.Holdable.Or(-1), f.Available.Or(-1), f.LimitBytes.Or(-1), f.LimitHeadroom.Or(-1), f.SwapFree.Or(-1), f.Estimate.Or(-1),
		f.Reclaim.Or("unknown"), f.Overcommit.Or("unknown"), f.PageSize.Or(-1),
	}
}

func TestMemoryOfRecordedMachines(t *testing.T) {
	squeeze := 3.8 // what the laptop's device achieves
	tests := []struct {
		machine string
		want    shown
	}{
		{"laptop-zram", shown{
			Holdable: 2831156 * kib, Available: 2831156 * kib, Limit: 0, Headroom: -1, SwapFree: 6157520 * kib,
			Estimate: 2831156*kib + int64(float64(6157520*kib)*(1-1/squeeze)),
			Reclaim:  planner.ReclaimCompress, Overcommit: "heuristic", Page: 4096,
		}},
		{"board-phone", shown{
			Holdable: 3774873 * kib, Available: 3774873 * kib, Headroom: -1, SwapFree: 7000000 * kib,
			Estimate: -1, Reclaim: planner.ReclaimCompress, Overcommit: "always", Page: 16384,
		}},
		{"container-v2", shown{ // high 3.5 GiB - (3 GiB - 1.75 GiB of file cache)
			Holdable: 9 * gib / 4, Available: 52428800 * kib, Limit: 7 * gib / 2, Headroom: 9 * gib / 4, SwapFree: 0,
			Estimate: -1, Reclaim: planner.ReclaimKill, Overcommit: "heuristic", Page: 4096,
		}},
		{"service-nested-v2", shown{ // the slice's high: 5 GiB - (3 GiB - 1 GiB)
			Holdable: 3 * gib, Available: 28311552 * kib, Limit: 5 * gib, Headroom: 3 * gib, SwapFree: 768 * mib,
			Estimate: -1, Reclaim: planner.ReclaimSwap, Overcommit: "heuristic", Page: 4096,
		}},
		{"container-v1", shown{ // 2 GiB - (1.5 GiB - 1 GiB)
			Holdable: 3 * gib / 2, Available: 24 * gib, Limit: 2 * gib, Headroom: 3 * gib / 2, SwapFree: 0,
			Estimate: -1, Reclaim: planner.ReclaimKill, Overcommit: "heuristic", Page: 4096,
		}},
		{"pod-v1-ancestor", shown{ // 3 GiB - (1 GiB - 0.5 GiB)
			Holdable: 5 * gib / 2, Available: 24 * gib, Limit: 3 * gib, Headroom: 5 * gib / 2, SwapFree: 0,
			Estimate: -1, Reclaim: planner.ReclaimKill, Overcommit: "heuristic", Page: 4096,
		}},
		{"server-no-swap", shown{ // overcommit is off, so the commit limit is one more
			Holdable: 100000000*kib - 32978867*kib, Available: 115 * gib, Limit: 100000000 * kib,
			Headroom: 100000000*kib - 32978867*kib, SwapFree: 0, Estimate: -1,
			Reclaim: planner.ReclaimKill, Overcommit: "never", Page: 4096,
		}},
		{"desktop-swap-disk", shown{
			Holdable: 18 * gib, Available: 18 * gib, Headroom: -1, SwapFree: 15728636 * kib,
			Estimate: -1, Reclaim: planner.ReclaimSwap, Overcommit: "heuristic", Page: 4096,
		}},
		{"laptop-zswap", shown{ // 768 MiB stored in 256: 3 to 1
			Holdable: 18 * gib, Available: 18 * gib, Headroom: -1, SwapFree: 15728636 * kib,
			Estimate: 18*gib + int64(float64(3000000*kib)*(1-1.0/3)),
			Reclaim:  planner.ReclaimCompress, Overcommit: "heuristic", Page: 4096,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.machine, func(t *testing.T) {
			f := recorded(t, tt.machine, nil).Memory()
			if diff := cmp.Diff(tt.want, show(f)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
			explained(t, f)
		})
	}
}

// explained checks that every unknown says why and every known how.
func explained(t *testing.T, f planner.MemoryFacts) {
	t.Helper()
	p := planner.Profile{Memory: f}
	for _, line := range p.Facts() {
		if strings.HasPrefix(line.Name, "memory.") && line.Reason == "" {
			t.Errorf("%s is %s without a reason", line.Name, line.State)
		}
	}
}

func TestMemoryOfBrokenTrees(t *testing.T) {
	text := func(s string) *string { return &s }
	const slice, service = "sys/fs/cgroup/batch.slice/", "sys/fs/cgroup/batch.slice/model.service/"
	tests := []struct {
		name, machine string
		edit          map[string]*string
		holdable      int64 // -1 unknown
		reclaim       planner.Reclaim
		why           string // in the reason of holdable
	}{
		{"no meminfo", "laptop-zram", map[string]*string{"proc/meminfo": nil}, -1, "compress", "meminfo"},
		{"empty meminfo", "desktop-swap-disk", map[string]*string{"proc/meminfo": text("")}, -1, "swap", "no readable line"},
		{"garbled meminfo", "laptop-zram", map[string]*string{"proc/meminfo": text("MemTotal: lots\nMemAvailable: -5 kB\n\x00\xff")}, -1, "compress", "no readable line"},
		{"old kernel without MemAvailable", "desktop-swap-disk", map[string]*string{
			"proc/meminfo": text("MemTotal: 4194304 kB\nMemFree: 1048576 kB\nCached: 1048576 kB\nShmem: 524288 kB\nSwapFree: 1024 kB\n"),
		}, 1536 * mib, "swap", "no MemAvailable"},
		{"no control groups", "desktop-swap-disk", map[string]*string{"proc/self/cgroup": nil}, 18 * gib, "swap", "MemAvailable"},
		{"garbled cgroup file", "desktop-swap-disk", map[string]*string{"proc/self/cgroup": text("what is this")}, -1, "unknown", "no readable line"},
		{"empty mountinfo", "container-v2", map[string]*string{"proc/self/mountinfo": text("\n")}, -1, "unknown", "mountinfo"},
		{"garbled limit", "service-nested-v2", map[string]*string{slice + "memory.high": text("plenty\n")}, -1, "unknown", `"plenty"`},
		{"empty limit", "service-nested-v2", map[string]*string{service + "memory.max": text("")}, -1, "unknown", "is empty"},
		{"limit without usage", "service-nested-v2", map[string]*string{slice + "memory.current": nil}, -1, "unknown", "memory.current is missing"},
		{"no statistics: nothing counts as reclaimable", "service-nested-v2", map[string]*string{slice + "memory.stat": nil}, 2 * gib, "swap", "memory.high"},
		{"usage above the limit", "service-nested-v2", map[string]*string{slice + "memory.current": text("99999999999999\n")}, 0, "swap", "memory.max"},
		{"a limit of zero", "service-nested-v2", map[string]*string{service + "memory.max": text("0\n")}, 0, "swap", "memory.max"},
		{"garbled swaps", "desktop-swap-disk", map[string]*string{"proc/swaps": text("???")}, 18 * gib, "unknown", "MemAvailable"},
		{"no swaps file", "desktop-swap-disk", map[string]*string{"proc/swaps": nil}, 18 * gib, "none", "MemAvailable"},
		{"group forbids the compressed pool", "laptop-zswap", map[string]*string{
			"sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/run.scope/memory.zswap.max": text("0\n"),
		}, 18 * gib, "swap", ""},
		{"address space limit", "desktop-swap-disk", map[string]*string{
			"proc/self/limits": text("Max address space         2147483648           2147483648           bytes\n"),
		}, 2*gib - 1200000*kib, "swap", "address space"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := recorded(t, tt.machine, tt.edit).Memory()
			if got := f.Holdable.Or(-1); got != tt.holdable {
				t.Errorf("holdable = %d, want %d (%s)", got, tt.holdable, f.Holdable.Reason)
			}
			if got := f.Reclaim.Or("unknown"); got != tt.reclaim {
				t.Errorf("reclaim = %s, want %s (%s)", got, tt.reclaim, f.Reclaim.Reason)
			}
			if !strings.Contains(f.Holdable.Reason, tt.why) {
				t.Errorf("reason %q does not mention %q", f.Holdable.Reason, tt.why)
			}
			explained(t, f)
		})
	}
}

func TestEstimateNeedsACompressorThatWorks(t *testing.T) {
	text := func(s string) *string { return &s }
	tests := []struct {
		name string
		stat *string
		want int64
		why  string
	}{
		{"statistics hidden", nil, -1, "mm_stat"},
		{"garbled", text("a b c d\n"), -1, "not its statistics"},
		{"short", text("1 2\n"), -1, "not its statistics"},
		{"nothing stored yet", text("4096 1000 8192 0 0 0 0 0 0\n"), -1, "too little to know"},
		{"nothing gets smaller", text("1945600000 1945600000 2000000000 0 0 0 0 0 0\n"), -1, "nothing smaller"},
		{"two to one", text("1000000000 500000000 500000000 0 0 0 0 0 0\n"), 2831156*kib + 6157520*kib/2, "2.00:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := recorded(t, "laptop-zram", map[string]*string{"sys/block/zram0/mm_stat": tt.stat}).Memory().Estimate
			if got := f.Or(-1); got != tt.want || !strings.Contains(f.Reason, tt.why) {
				t.Errorf("estimate = %d (%s), want %d because of %q", got, f.Reason, tt.want, tt.why)
			}
		})
	}
}

func TestCoresOfRecordedMachines(t *testing.T) {
	tests := []struct {
		machine  string
		classes  []planner.CoreClass
		physical int64
		numa     int64
		governor string
		temp     float64
		mhz      float64
	}{
		{"laptop-zram", []planner.CoreClass{{Cores: 4, MaxMHz: 4400}, {Cores: 4, MaxMHz: 3300}}, 6, 1, "powersave", 63, 1500},
		{"board-phone", []planner.CoreClass{{Cores: 1, MaxMHz: 3360, Capacity: 1024}, {Cores: 4, MaxMHz: 2803, Capacity: 801}, {Cores: 3, MaxMHz: 2016, Capacity: 325}}, 8, 1, "walt", 58.2, 600},
		{"container-v2", nil, 4, 1, "unknown", -1, -1},
		{"server-no-swap", []planner.CoreClass{{Cores: 4, MaxMHz: 3700}}, 4, 2, "performance", -1, 3700},
	}
	for _, tt := range tests {
		t.Run(tt.machine, func(t *testing.T) {
			f := recorded(t, tt.machine, nil).Cores()
			if diff := cmp.Diff(tt.classes, f.Classes.Value); diff != "" {
				t.Errorf("classes (-want +got):\n%s", diff)
			}
			if f.Physical.Or(-1) != tt.physical || f.NUMA.Or(-1) != tt.numa || f.Governor.Or("unknown") != tt.governor ||
				f.TempC.Or(-1) != tt.temp || f.FreqMHz.Or(-1) != tt.mhz {
				t.Errorf("physical %d numa %d governor %s temp %g mhz %g, want %+v", f.Physical.Or(-1), f.NUMA.Or(-1), f.Governor.Or("unknown"), f.TempC.Or(-1), f.FreqMHz.Or(-1), tt)
			}
		})
	}
}

func TestIdentityOfRecordedMachines(t *testing.T) {
	laptop := recorded(t, "laptop-zram", nil).Machine()
	if laptop.CPU != "Recorded Laptop CPU @ 2.80GHz" || laptop.Cores != 6 || laptop.Threads != 8 || laptop.RAMBytes%ramGrain != 0 {
		t.Errorf("laptop = %+v", laptop)
	}
	if board := recorded(t, "board-phone", nil).Machine(); board.CPU != "Recorded Board" || board.Arch != "arm64" {
		t.Errorf("board = %+v", board)
	}
	if desk := recorded(t, "desktop-swap-disk", nil).Machine(); desk.Storage != "Recorded SSD 1TB" {
		t.Errorf("desktop storage = %q", desk.Storage)
	}
	text := func(s string) *string { return &s }
	later := recorded(t, "laptop-zram", map[string]*string{
		"proc/sys/kernel/osrelease": text("6.13.0\n"), "proc/loadavg": text("9 9 9 1/1 1\n"),
		"proc/meminfo": text("MemTotal: 16115900 kB\nMemAvailable: 1 kB\n"),
	}).Machine()
	if later.ID != laptop.ID {
		t.Errorf("a kernel update made another machine:\n%s", cmp.Diff(laptop, later))
	}
}

func TestEnvironmentOfRecordedMachine(t *testing.T) {
	e := recorded(t, "laptop-zram", nil).Environment(t.Context(), "")
	if e.Kernel != "6.12.9-200.fc41.x86_64" || e.Load1 != 0.52 || e.PSIMem != 1.25 || e.MemWaited == 0 || e.THP != "madvise" ||
		e.TempC != 63 || e.Governor != "powersave" || e.SwapUsed != 1900000*kib || e.CachedModelFrac != -1 || e.MemAvailable != 2831156*kib {
		t.Errorf("environment = %+v", e)
	}
}

func FuzzTreesNeverPanic(f *testing.F) {
	f.Add("0::/a\n", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "max\n", "MemTotal: 1 kB\nMemAvailable: 1 kB\n", "Filename\n/dev/zram0 partition 1 2 3\n", "0-3,7\n")
	f.Fuzz(func(t *testing.T, cgroup, mounts, limit, meminfo, swaps, present string) {
		file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
		h := &Host{PageSize: 4096, Now: func() time.Time { return time.Unix(0, 0) }, Files: fstest.MapFS{
			"proc/self/cgroup": file(cgroup), "proc/self/mountinfo": file(mounts), "proc/meminfo": file(meminfo), "proc/swaps": file(swaps),
			"sys/fs/cgroup/memory.max": file(limit), "sys/fs/cgroup/memory.current": file(limit), "proc/self/limits": file(limit),
			"sys/devices/system/cpu/present": file(present), "proc/self/status": file(meminfo),
		}}
		m := h.Memory()
		if n, ok := m.Holdable.Get(); ok && n < 0 {
			t.Errorf("holdable = %d", n)
		}
		h.Cores()
		h.Machine()
		h.Environment(t.Context(), "")
	})
}
