package stream

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Named, as the tests of docs/reliability.md are, for what users of other
// programs reported.

// A change of topic, from one set of experts to another, evicts: what the cache
// holds never passes its budget, and the new topic is served from it in turn.
func TestFieldCacheCapHoldsOnTopicChange(t *testing.T) {
	for _, policy := range []string{"a2d", "lru", "layer-lru", "layer-lfu"} {
		cfg := small(false)
		cfg.Policy, cfg.Experts, cfg.BudgetBytes = policy, 64, 96<<10
		m := newFake(t, cfg, 1, smallSizes)
		rnd := rand.New(rand.NewPCG(5, 6))
		topic := func(first int) func(int) []int32 {
			return func(int) []int32 {
				ids := picks(rnd, 8, 4, 1)
				for i := range ids {
					ids[i] += int32(first)
				}
				return ids
			}
		}
		for _, first := range []int{0, 40, 16} {
			var before int64
			for n := range 60 {
				if err := m.graph(1, false, topic(first)); err != nil {
					t.Fatal(err)
				}
				c := m.s.Counters()
				if c.CacheResidentBytes > cfg.BudgetBytes || c.CacheBudgetBytes > cfg.BudgetBytes {
					t.Fatalf("%s: %d bytes are held under a cap of %d", policy, c.CacheResidentBytes, cfg.BudgetBytes)
				}
				if n == 40 {
					before = c.Hits
				}
			}
			m.consistent()
			if m.s.Counters().Hits == before {
				t.Errorf("%s: 20 tokens of one topic hit nothing: the topic before it is still held", policy)
			}
		}
	}
}

// Under a lock limit of 8 MiB, a shell's usual one, the cache shrinks to what
// was granted, says how much was not, and serves the right bytes.
func TestFieldLockLimitOf8MiBStepsDown(t *testing.T) {
	runtime.LockOSThread() // never unlocked: the thread that lost its right ends with the test
	if err := dropLockRight(); err != nil {
		t.Fatal(err)
	}
	var kept unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &kept); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 8 << 20, Max: kept.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &kept) }()
	cfg := small(false)
	cfg.Experts, cfg.BudgetBytes, cfg.Pin, cfg.PinFit = 64, 24<<20, true, true
	m := newFake(t, cfg, 1, [][]int64{{64 << 10, 64 << 10, 64 << 10}})
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		if err := m.graph(1, false, func(int) []int32 { return picks(rnd, 64, 4, 1) }); err != nil {
			t.Fatal(err)
		}
	}
	m.consistent()
	c := m.s.Counters()
	if c.CacheLockedBytes <= 0 || c.CacheLockedBytes > 8<<20 {
		t.Errorf("%d bytes are locked under a limit of 8 MiB", c.CacheLockedBytes)
	}
	if c.CachePinRefusedBytes <= 0 {
		t.Error("the refusal was not counted")
	}
	if c.CacheBudgetBytes > c.CacheLockedBytes || c.CacheResidentBytes > c.CacheLockedBytes {
		t.Errorf("budget %d, resident %d, but only %d locked: it did not step down", c.CacheBudgetBytes, c.CacheResidentBytes, c.CacheLockedBytes)
	}
}

// dropLockRight takes the right to lock beyond the limit from this thread.
func dropLockRight() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << unix.CAP_IPC_LOCK
	return unix.Capset(&hdr, &data[0])
}
