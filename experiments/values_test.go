package experiments

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseValues(t *testing.T) {
	for _, c := range []struct {
		lever, text string
		want        []string
		err         string
	}{
		{lever: "io-threads", text: "1,2,4,8", want: []string{"1", "2", "4", "8"}},
		{lever: "io-threads", text: "1-8+2", want: []string{"1", "3", "5", "7"}},
		{lever: "io-threads", text: "1-16*2", want: []string{"1", "2", "4", "8", "16"}},
		{lever: "io-threads", text: "1-3", want: []string{"1", "2", "3"}},
		{lever: "io-threads", text: "1-3,8, 16", want: []string{"1", "2", "3", "8", "16"}},
		{lever: "io-threads", text: "4-4", want: []string{"4"}},
		{lever: "cache-mb", text: "auto,64-256*2", want: []string{"auto", "64", "128", "256"}},
		{lever: "cache-policy", text: "lru,a2d", want: []string{"lru", "a2d"}},
		{lever: "overlap", text: "off,true", want: []string{"off", "on"}},
		{lever: "repack", text: "off,on", want: []string{"off", "on"}},
		{lever: "io-threads", text: "0", err: "--io-threads"},
		{lever: "io-threads", text: "65", err: "--io-threads"},
		{lever: "io-threads", text: "1,1", err: "listed twice"},
		{lever: "io-threads", text: "8-1", err: "ends before it starts"},
		{lever: "io-threads", text: "1-8+0", err: "at least 1"},
		{lever: "io-threads", text: "1-8*1", err: "factor"},
		{lever: "cache-mb", text: "0-8*2", err: "factor"},
		{lever: "io-threads", text: "1,,2", err: "missing"},
		{lever: "io-threads", text: "", err: "missing"},
		{lever: "io-threads", text: "two", err: "--io-threads"},
		{lever: "cache-mb", text: "1-1000000000", err: "more than 26"},
		{lever: "cache-mb", text: "1-99999999999999999999", err: "too large"},
		{lever: "cache-policy", text: "fifo", err: "a2d"},
	} {
		p, err := Lever(c.lever)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseValues(p, c.text)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s %q: error %v, want one with %q", c.lever, c.text, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %q: %v", c.lever, c.text, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s %q: %s", c.lever, c.text, d)
		}
	}
}

func FuzzParseValues(f *testing.F) {
	for _, s := range []string{"1,2,4", "1-8*2", "1-8+3", "auto", "-", "9223372036854775807-9223372036854775807", "1-9223372036854775807*9223372036854775807"} {
		f.Add(s)
	}
	p, err := Lever("cache-mb")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := ParseValues(p, text)
		if err != nil {
			return
		}
		if len(values) == 0 || len(values) > MaxArms {
			t.Fatalf("%q: %d values", text, len(values))
		}
		again, err := ParseValues(p, strings.Join(values, ","))
		if err != nil || cmp.Diff(values, again) != "" {
			t.Fatalf("%q: %v is not read back: %v, %v", text, values, again, err)
		}
	})
}

func TestLever(t *testing.T) {
	for name, want := range map[string]string{
		"io-thread": "did you mean io-threads?",
		"cachepin":  "did you mean cache-pin?",
		"UBATCH":    "levers are",
		"ctx-size":  "a sweep cannot vary it",
		"zzzzzzzzz": "levers are cache-mb, cache-pin",
		"ubatchs":   "did you mean ubatch?",
		"odirekt":   "did you mean odirect?",
		"prefill":   "levers are",
	} {
		if _, err := Lever(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for _, name := range []string{"io-threads", "ubatch", "prefill-slots", "release-mmap", "cache-pin", "dense-weights", "cache-mb", "cache-policy", "overlap", "expert-prefetch", "odirect", "repack", "threads"} {
		p, err := Lever(name)
		if err != nil {
			t.Fatal(err)
		}
		values := DefaultValues(name, Limits{Threads: 8, RoutedBytes: 8 << 30, TokenCycle: 300 << 20, HoldableBytes: 3 << 30})
		if len(values) < 2 {
			t.Errorf("%s: default values %v", name, values)
		}
		if got, err := ParseValues(p, strings.Join(values, ",")); err != nil || cmp.Diff(values, got) != "" {
			t.Errorf("%s: default values %v are not its own: %v, %v", name, values, got, err)
		}
		if len(levers[name].counters) == 0 {
			t.Errorf("%s: no counter shows that it acts", name)
		}
	}
}

func TestDefaultValuesFollowTheMachine(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		lever string
		l     Limits
		want  []string
	}{
		{"threads", Limits{Threads: 2}, []string{"1", "2"}},
		{"threads", Limits{Threads: 6}, []string{"1", "2", "4", "6"}},
		{"prefill-device", Limits{}, []string{"none"}},
		{"prefill-device", Limits{Devices: []string{"RPC0", "Vulkan0"}}, []string{"none", "RPC0", "Vulkan0"}},
		{"cache-mb", Limits{RoutedBytes: 8 * gib, TokenCycle: gib / 4}, []string{"1024", "2048", "4096"}},
		{"cache-mb", Limits{RoutedBytes: 8 * gib, TokenCycle: gib / 4, HoldableBytes: 3 * gib}, []string{"1024", "2048", "3072"}},
		{"cache-mb", Limits{RoutedBytes: 8 * gib, TokenCycle: 3 * gib, HoldableBytes: 16 * gib}, []string{"3072", "4096"}},
	} {
		if d := cmp.Diff(c.want, DefaultValues(c.lever, c.l)); d != "" {
			t.Errorf("%s %+v: %s", c.lever, c.l, d)
		}
	}
}
