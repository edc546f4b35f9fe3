package engine

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// held is what a process holds that only Close can give back. C's own memory is
// looked after by `make sanitize`, which runs these tests under a leak checker;
// what is mapped (arenas, models, slots) no leak checker sees.
type held struct{ files, routines, threads, mapped int }

func holds(t *testing.T) held {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[0])
	if err != nil {
		t.Fatal(err)
	}
	return held{len(fds), runtime.NumGoroutine(), len(threads), pages * os.Getpagesize()}
}

// settled waits for what ends a moment after Close returns (a thread's exit).
func settled(t *testing.T, limit held) held {
	t.Helper()
	now := holds(t)
	for range 50 {
		if now.files <= limit.files && now.routines <= limit.routines && now.threads <= limit.threads {
			break
		}
		time.Sleep(20 * time.Millisecond)
		now = holds(t)
	}
	return now
}

// A closed session leaves nothing behind: no file, thread, goroutine or mapping.
// Two are opened first, since registries and thread pools are made once.
func TestCloseFreesEverything(t *testing.T) {
	cfg := baseConfig(makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0")))
	cfg.MoeStream, cfg.CacheMB, cfg.PrefillSlots = true, 32, 2
	once := func() {
		s, err := Open(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		turn(t, s, Request{Text: words(40), Predict: 8})
		if c := s.Counters(); c.Misses == 0 || c.CacheResidentBytes == 0 {
			t.Fatalf("nothing was streamed: %+v", c)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	once()
	once()
	before := settled(t, held{})
	const sessions = 6
	for range sessions {
		once()
	}
	after := settled(t, before)
	if after.files > before.files || after.routines > before.routines {
		t.Errorf("held before %+v, after %d sessions more %+v", before, sessions, after)
	}
	// Go keeps threads that were in a call of C for later ones; the lanes of six
	// sessions would be six more at least.
	if after.threads >= before.threads+sessions {
		t.Errorf("%d threads before, %d after %d sessions more", before.threads, after.threads, sessions)
	}
	if grown := after.mapped - before.mapped; grown > sessions<<20*16 {
		t.Errorf("%d MiB more are mapped after %d sessions with a cache of 32 MiB", grown>>20, sessions)
	}
}
