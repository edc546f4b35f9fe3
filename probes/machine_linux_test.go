package probes

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/planner"
)

// groupEnv names the control group a child job puts itself into first, and
// fileEnv a file it reads.
const (
	groupEnv = "BMOE_TEST_GROUP"
	fileEnv  = "BMOE_TEST_FILE"
)

// platformJob is a child's job that needs this system's calls.
func platformJob(job string) error {
	if dir := os.Getenv(groupEnv); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			return err
		}
	}
	switch job {
	case "locks":
		if err := dropLockCapability(); err != nil {
			return err
		}
		h := Local()
		return encode(h.Locks(h.Memory().Holdable))
	case "memory":
		if f := os.Getenv(fileEnv); f != "" {
			if err := readThrough(f); err != nil {
				return err
			}
		}
		return encode(Local().Memory())
	case "hold":
		return encode(Local().headroom(context.Background(), Local().Memory().Reclaim.Value, nil))
	case "zram":
		return zramJob()
	case "storage":
		return storageJob()
	}
	return fmt.Errorf("no job %q", job)
}

// storageJob runs every probe that allocates and says what it held at most.
func storageJob() error {
	h := Local()
	path := os.Getenv(fileEnv)
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	hold := h.Memory().Holdable
	h.Locks(hold)
	f := h.Storage(context.Background(), target{path: path, extents: []extent{{0, st.Size()}}, slice: 288 << 10}, min(mostBuffers, hold.Value/8))
	return encode(f)
}

func readThrough(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = bufio.NewReaderSize(f, 1<<20).WriteTo(nowhere{})
	return err
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// dropLockCapability gives up CAP_IPC_LOCK on the main thread.
func dropLockCapability() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << capIPCLock
	data[0].Permitted &^= 1 << capIPCLock
	return unix.Capset(&hdr, &data[0])
}

// runChild starts this test binary for a job and decodes its answer.
func runChild(t *testing.T, job string, answer any, env ...string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(append(os.Environ(), jobEnv+"="+job), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("job %s: %v", job, err)
	}
	if err := json.Unmarshal(out, answer); err != nil {
		t.Fatalf("job %s answered %q: %v", job, out, err)
	}
}

// limitedGroup makes a control group with a memory limit, or skips: making one
// needs rights that a test run may not have.
func limitedGroup(t *testing.T, limit int64) string {
	t.Helper()
	h := Local()
	groups, err := h.memoryGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		limitFile := "memory.max"
		if g.version == 1 {
			limitFile = "memory.limit_in_bytes"
		}
		dir := filepath.Join(g.dir, fmt.Sprintf("bmoe-test-%d-%d", os.Getpid(), rand.IntN(1<<30)))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		if os.WriteFile(filepath.Join(dir, limitFile), []byte(strconv.FormatInt(limit, 10)), 0) == nil {
			return dir
		}
	}
	t.Skip("this account may not make a memory control group; run the tests as root to see limits respected")
	return ""
}

// fileOf writes a file of random bytes, which no drive compresses.
func fileOf(t *testing.T, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weights")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 1<<20)
	for at := 0; at < size; at += len(buf) {
		for i := 0; i < len(buf); i += 8 {
			v := rng.Uint64()
			for b := range 8 {
				buf[i+b] = byte(v >> (8 * b))
			}
		}
		if _, err := f.Write(buf); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := forget(f, 0, int64(size)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLockLimitWithoutTheCapability(t *testing.T) {
	var f planner.LockFacts
	runChild(t, "locks", &f)
	limit, limited, err := Local().rlimit("Max locked memory")
	if err != nil || !limited {
		t.Skipf("there is no lock limit here (%v), so there is none to find", err)
	}
	if got := f.InPlace.Or(-1); got > limit || got < 0 || f.InPlace.Provenance != planner.Measured {
		t.Errorf("in place = %+v, want at most the limit of %d", f.InPlace, limit)
	}
	if strings.Contains(f.InPlace.Reason, "lifts the lock limit") {
		t.Errorf("the child still had the capability: %s", f.InPlace.Reason)
	}
}

func TestFileCacheDoesNotCountAgainstALimit(t *testing.T) {
	const limit = 192 << 20
	group, file := limitedGroup(t, limit), fileOf(t, 256<<20)
	var empty, full planner.MemoryFacts
	runChild(t, "memory", &empty, groupEnv+"="+group)
	runChild(t, "memory", &full, groupEnv+"="+group, fileEnv+"="+file)
	if got := full.LimitBytes.Or(0); got != limit {
		t.Errorf("limit = %d, want %d (%s)", got, limit, full.LimitBytes.Reason)
	}
	const slack = 48 << 20 // the child itself
	for name, f := range map[string]planner.MemoryFacts{"empty": empty, "full of file cache": full} {
		if got := f.Holdable.Or(0); got < limit-slack || got > limit {
			t.Errorf("%s: holdable = %d of %d (%s)", name, got, limit, f.Holdable.Reason)
		}
	}
	if full.Reclaim.Or("") == planner.ReclaimNone {
		t.Errorf("reclaim = %+v under a limit", full.Reclaim)
	}
}

func TestHoldStaysUnderALimit(t *testing.T) {
	const limit = 512 << 20
	group := limitedGroup(t, limit)
	var f planner.Fact[int64]
	runChild(t, "hold", &f, groupEnv+"="+group)
	got, ok := f.Get()
	if !ok || got > limit-margin(limit) || got < limit/2 {
		t.Errorf("headroom = %+v, want between half of the limit and the limit less its margin", f)
	}
	if !strings.Contains(f.Reason, "ceiling") && !strings.Contains(f.Reason, "stopped before") {
		t.Errorf("reason %q does not say that the limit ended it", f.Reason)
	}
}

func TestStorageUnderALimit(t *testing.T) {
	const limit = 96 << 20
	group, file := limitedGroup(t, limit), fileOf(t, 256<<20)
	var f planner.StorageFacts
	runChild(t, "storage", &f, groupEnv+"="+group, fileEnv+"="+file)
	if !f.Curve.OK() && f.FileSystem.Or("") != "tmpfs" {
		t.Errorf("curve = %+v", f.Curve)
	}
}

func TestStorageOfARealFile(t *testing.T) {
	file := fileOf(t, 192<<20)
	f := Local().Storage(t.Context(), target{path: file, extents: []extent{{4096, 188 << 20}}, slice: 288 << 10}, 64<<20)
	if f.FileSystem.Or("") == "tmpfs" {
		unknown(t, f.Curve, "memory")
		return
	}
	rate, ok := at(f, 288<<10, 1)
	if !ok || rate < 1e6 || rate > 200e9 {
		t.Errorf("rate = %g (%s)", rate, f.Curve.Reason)
	}
	if f.Curve.CostS > 4 {
		t.Errorf("cost %.1f s", f.Curve.CostS)
	}
	if planner.Ask(f.ODirect) == planner.DontKnow || !f.Refault.OK() {
		t.Errorf("odirect %+v refault %+v", f.ODirect, f.Refault)
	}
}

func TestStorageRefusesMemoryAndHoles(t *testing.T) {
	sparse := filepath.Join(t.TempDir(), "sparse")
	if err := os.WriteFile(sparse, []byte("head"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(sparse, 1<<30); err != nil {
		t.Fatal(err)
	}
	f := Local().Storage(t.Context(), target{path: sparse, extents: []extent{{0, 1 << 30}}, slice: 288 << 10}, 64<<20)
	if f.FileSystem.Or("") != "tmpfs" {
		unknown(t, f.Curve, "sparse")
	}
	shm, err := os.CreateTemp("/dev/shm", "bmoe-test-")
	if err != nil {
		t.Skipf("there is no memory file system to try: %v", err)
	}
	defer os.Remove(shm.Name())
	defer shm.Close()
	if err := shm.Truncate(64 << 20); err != nil {
		t.Fatal(err)
	}
	f = Local().Storage(t.Context(), target{path: shm.Name(), extents: []extent{{0, 64 << 20}}, slice: 288 << 10}, 64<<20)
	unknown(t, f.Curve, "is memory")
	unknown(t, Local().Storage(t.Context(), target{path: "/no/such/file", slice: 1}, 1<<30).Curve, "no such file")
	unknown(t, Local().Storage(t.Context(), target{path: "/dev/null", slice: 1}, 1<<30).Curve, "not a regular file")
}

func TestCachedFraction(t *testing.T) {
	file := fileOf(t, 16<<20)
	place, err := placeOf(file)
	if err != nil || place.memory {
		t.Skipf("the test folder is on %s: its files are always in memory", place.name)
	}
	if got := cachedFraction([]string{file}); got > 0.1 {
		t.Errorf("dropped: %g cached", got)
	}
	if err := readThrough(file); err != nil {
		t.Fatal(err)
	}
	if got := cachedFraction([]string{file}); got < 0.9 {
		t.Errorf("read: %g cached", got)
	}
}
