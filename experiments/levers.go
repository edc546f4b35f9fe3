package experiments

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/engine/counters"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/results/record"
)

// counter is a number a run reports that shows whether a lever acted.
type counter struct {
	name string
	get  func(*counters.Counters) int64
}

// Limits are what a machine and a model allow a lever's values.
type Limits struct {
	Threads       int   // hardware threads; 0 unknown
	HoldableBytes int64 // room for an expert cache; 0 unknown
	RoutedBytes   int64 // all routed experts
	TokenCycle    int64 // expert bytes of one token
	Devices       []string
}

// lever is what the harness knows of a knob beside the knob table.
type lever struct {
	counters []counter // at least one must differ between two arms
	bits     bool      // may change the output in its last bits, and so its tokens
	streams  bool      // acts on streamed experts only
	follows  []string  // knobs that take the lever's value unless they are set
	values   func(Limits) []string
}

func list(values ...string) func(Limits) []string {
	return func(Limits) []string { return values }
}

var levers = map[string]lever{
	"io-threads": {
		counters: []counter{{"lanes", func(c *counters.Counters) int64 { return c.Lanes }}},
		streams:  true, values: list("1", "2", "4", "8"),
	},
	"ubatch": {
		counters: []counter{{"prefill_graphs", func(c *counters.Counters) int64 { return c.PrefillGraphs }}},
		bits:     true, values: list("64", "128", "256", "512"),
	},
	"prefill-slots": {
		counters: []counter{{"prefill_ahead", func(c *counters.Counters) int64 { return c.PrefillAhead }}},
		streams:  true, values: list("1", "2"),
	},
	"release-mmap": {
		counters: []counter{{"mmap_released_bytes", func(c *counters.Counters) int64 { return c.MmapReleasedBytes }}},
		streams:  true, values: list("off", "on"),
	},
	"cache-pin": {
		counters: []counter{{"cache_locked_bytes", func(c *counters.Counters) int64 { return c.CacheLockedBytes }}},
		streams:  true, values: list("off", "on"),
	},
	"dense-weights": {
		counters: []counter{
			{"dense_copied_bytes", func(c *counters.Counters) int64 { return c.DenseCopiedBytes }},
			{"dense_locked_bytes", func(c *counters.Counters) int64 { return c.DenseLockedBytes }},
		},
		streams: true, values: list("mmap", "anon", "pinned"),
	},
	"cache-mb": {
		counters: []counter{{"cache_budget_bytes", func(c *counters.Counters) int64 { return c.CacheBudgetBytes }}},
		streams:  true, values: cacheSizes,
	},
	"cache-policy": {
		counters: []counter{
			{"hits", func(c *counters.Counters) int64 { return c.Hits }},
			{"evictions", func(c *counters.Counters) int64 { return c.Evictions }},
			{"bytes_read", func(c *counters.Counters) int64 { return c.BytesRead }},
		},
		streams: true, values: list("lru", "a2d", "layer-lru", "layer-lfu"),
	},
	"overlap": {
		counters: []counter{{"overlap_waits", func(c *counters.Counters) int64 { return c.OverlapWaits }}},
		streams:  true, values: list("off", "on"),
	},
	"expert-prefetch": {
		counters: []counter{{"prefetch_reads", func(c *counters.Counters) int64 { return c.PrefetchReads }}},
		streams:  true, values: list("off", "on"),
	},
	"odirect": {
		counters: []counter{{"direct_reads", func(c *counters.Counters) int64 { return c.DirectReads }}},
		streams:  true, values: list("off", "on"),
	},
	"repack": {
		counters: []counter{
			{"repacked_bytes", func(c *counters.Counters) int64 { return c.RepackedBytes }},
			{"dense_repacked_bytes", func(c *counters.Counters) int64 { return c.DenseRepacked }},
		},
		bits: true, values: list("off", "on"),
	},
	"threads": {
		counters: []counter{{"compute_threads", func(c *counters.Counters) int64 { return c.ComputeThreads }}},
		bits:     true, follows: []string{"threads-batch"}, values: threadCounts,
	},
	"prefill-device": {
		counters: []counter{{"bytes_to_device", func(c *counters.Counters) int64 { return c.BytesToDevice }}},
		bits:     true, streams: true, values: devices,
	},
}

// devices are the host and each device there is beside it.
func devices(l Limits) []string { return append([]string{"none"}, l.Devices...) }

// threadCounts are powers of two up to the machine's threads, and that number.
func threadCounts(l Limits) []string {
	most := max(l.Threads, 2)
	var out []string
	for n := 1; n < most; n *= 2 {
		out = append(out, strconv.Itoa(n))
	}
	return append(out, strconv.Itoa(most))
}

// cacheSizes are an eighth, a quarter and a half of the routed experts, never
// below one token's need nor above what can be held.
func cacheSizes(l Limits) []string {
	const mib = 1 << 20
	least := (l.TokenCycle + mib - 1) / mib
	var out []string
	for _, part := range []int64{8, 4, 2} {
		size := max(l.RoutedBytes/part/mib, least, 1)
		if l.HoldableBytes > 0 {
			size = min(size, l.HoldableBytes/mib)
		}
		if v := strconv.FormatInt(size, 10); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// Lever finds a knob that may be swept. The error for one that may not suggests
// the nearest that may.
func Lever(name string) (*config.Param, error) {
	p, ok := config.Lookup(name)
	if _, known := levers[name]; ok && p.Lever && known {
		return p, nil
	}
	var names []string
	for n := range levers {
		names = append(names, n)
	}
	slices.Sort(names)
	if ok {
		return nil, fmt.Errorf("--lever %s: the knob exists, but a sweep cannot vary it; levers are %s", name, strings.Join(names, ", "))
	}
	if near := Nearest(name, names); near != "" {
		return nil, fmt.Errorf("--lever %s: no such lever; did you mean %s?", name, near)
	}
	return nil, fmt.Errorf("--lever %s: no such lever; levers are %s", name, strings.Join(names, ", "))
}

// Streams says that the lever acts on streamed experts only.
func Streams(name string) bool { return levers[name].streams }

// DefaultValues is the lever's own list for a machine and a model.
func DefaultValues(name string, l Limits) []string { return levers[name].values(l) }

// Nearest is the candidate that the fewest edits turn name into, "" when none
// is near.
func Nearest(name string, candidates []string) string {
	best, fewest := "", math.MaxInt
	for _, c := range candidates {
		if d := edits(name, c); d < fewest {
			best, fewest = c, d
		}
	}
	if fewest > max(2, len(name)/2) {
		return ""
	}
	return best
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// SweepArms are the base configuration at each value of the lever.
func SweepArms(p *config.Param, values []string, base config.Config) ([]record.Arm, error) {
	var arms []record.Arm
	for _, v := range values {
		c := base
		text := v
		if text == "none" && p.Kind == config.String {
			text = ""
		}
		if err := p.Set(&c, text); err != nil {
			return nil, err
		}
		arms = append(arms, record.Arm{Name: v, Value: v, Config: c})
	}
	return arms, nil
}

// AAArms are the same configuration twice: what differs is noise.
func AAArms(base config.Config) []record.Arm {
	return []record.Arm{{Name: "A1", Value: "A1", Config: base}, {Name: "A2", Value: "A2", Config: base}}
}
