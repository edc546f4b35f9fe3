package probes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/planner"
)

// zramEnv asks for the test below, which gives the whole machine a swap device
// for a moment.
const zramEnv = "BMOE_TEST_ZRAM"

// zramAnswer is what a child found out under pressure.
type zramAnswer struct {
	Lost   int64
	Before planner.MemoryFacts
	After  planner.MemoryFacts
}

// zramJob holds memory, has the kernel take some of it back and looks.
func zramJob() error {
	h := Local()
	m, err := newHolder(h)
	if err != nil {
		return err
	}
	defer m.release()
	a := zramAnswer{Before: h.Memory()}
	if err := m.hold(128 << 20); err != nil {
		return err
	}
	group := os.Getenv(groupEnv)
	for _, file := range []string{"memory.limit_in_bytes", "memory.high"} {
		_ = os.WriteFile(filepath.Join(group, file), []byte("67108864"), 0)
	}
	if a.Lost, err = m.lost(); err != nil {
		return err
	}
	a.After = h.Memory()
	return encode(a)
}

func TestARealCompressorTakesPagesBack(t *testing.T) {
	if os.Getenv(zramEnv) == "" {
		t.Skipf("set %s=1, as root, to give this machine a compressed swap device for a moment", zramEnv)
	}
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
		}
	}
	const dev = "/dev/zram0"
	if err := os.WriteFile("/sys/block/zram0/disksize", []byte("512M"), 0); err != nil {
		t.Fatalf("size of %s: %v", dev, err)
	}
	t.Cleanup(func() { _ = os.WriteFile("/sys/block/zram0/reset", []byte("1"), 0) })
	run("mkswap", dev)
	run("swapon", dev)
	t.Cleanup(func() { _ = exec.Command("swapoff", dev).Run() })

	group := limitedGroup(t, 512<<20)
	var a zramAnswer
	runChild(t, "zram", &a, groupEnv+"="+group)
	if a.Before.Reclaim.Or("") != planner.ReclaimCompress || a.Before.SwapFree.Or(0) == 0 {
		t.Errorf("before: reclaim %+v, swap %+v", a.Before.Reclaim, a.Before.SwapFree)
	}
	if a.Lost < 32<<20 {
		t.Errorf("lost %d bytes, and the limit took back at least 64 MiB", a.Lost)
	}
	// What was taken back is noise: the device must be seen to gain nothing.
	if e := a.After.Estimate; e.OK() || !strings.Contains(e.Reason, "nothing smaller") {
		t.Errorf("estimate = %+v, want unknown because noise does not get smaller", e)
	}
}
