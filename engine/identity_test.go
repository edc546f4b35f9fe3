package engine

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/bmoe/bmoe/engine/internal/gguf"
	"github.com/bmoe/bmoe/planner/config"
)

const steps = 96

// budgets are the cache sizes each model is streamed with: one token cycle, a
// quarter and all of the experts.
func budgets(t *testing.T, model string) map[string]int64 {
	m, err := gguf.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]int64{"cycle": m.TokenCycle(0), "quarter": m.RoutedBytes() / 4, "all": m.RoutedBytes()}
}

// sameBits streams a model at every budget and compares with the resident run.
func sameBits(t *testing.T, model string) {
	t.Helper()
	want := generate(t, baseConfig(model), "Once upon a time", steps)
	for name, bytes := range budgets(t, model) {
		cfg := baseConfig(model)
		cfg.MoeStream, cfg.CacheMB = true, mib(bytes)
		got := generate(t, cfg, "Once upon a time", steps)
		if got.hash != want.hash {
			t.Errorf("%s, cache %s: logits differ from the resident model's: %s, want %s", model, name, got.hash, want.hash)
		}
		if got.c.Misses == 0 || got.c.Lookups == 0 {
			t.Errorf("cache %s: %d lookups, %d misses: nothing was streamed", name, got.c.Lookups, got.c.Misses)
		}
		if evicts := got.c.Evictions > 0; evicts != (name != "all") {
			t.Errorf("cache %s: %d evictions", name, got.c.Evictions)
		}
	}
}

func TestStreamedEqualsResident(t *testing.T) {
	for _, arch := range []string{"qwen3moe", "llama", "olmoe", "qwen2moe"} {
		for _, typ := range []string{"q8_0", "f32"} {
			t.Run(arch+"/"+typ, func(t *testing.T) { sameBits(t, makeModel(t, arch+"-"+typ, tiny(arch, typ))) })
		}
	}
}

func TestStreamedEqualsResidentOnTrainedWeights(t *testing.T) { sameBits(t, storyModel(t)) }

// Layers that find their experts in the cache are answered without a stop in
// the graph, on every thread count, and also where the cache fails them then.
func TestCallsInsideTheGraphEqualResident(t *testing.T) {
	spec := tiny("qwen3moe", "q8_0")
	spec.Skew = 2 // a rare expert is read late, when its layer is no longer stopped at
	model := makeModel(t, "calls", spec)
	for _, threads := range []int{1, 2} {
		for _, overlap := range []bool{false, true} {
			cfg := baseConfig(model)
			cfg.Threads, cfg.ThreadsBatch = threads, threads
			want := generate(t, cfg, "Once upon a time", 256)
			cfg.MoeStream, cfg.CacheMB, cfg.Overlap = true, routedShare(t, model, 1), overlap
			got := generate(t, cfg, "Once upon a time", 256)
			if got.hash != want.hash {
				t.Errorf("%d threads, overlap %v: logits differ from the resident model's", threads, overlap)
			}
			c := got.c
			if c.HookResident == 0 || c.HookInGraph == 0 || c.HookCalls <= c.HookInGraph {
				t.Errorf("of %d routings %d were answered from the table, %d inside the graph", c.HookCalls, c.HookResident, c.HookInGraph)
			}
			if c.HookInGraphReads > 0 != overlap { // without overlap all is read when the routing is answered
				t.Errorf("overlap %v: %d calls inside the graph waited for reads", overlap, c.HookInGraphReads)
			}
			if want := c.Hits + c.Misses; c.Lookups != want || c.ExpertsRouted < c.Lookups {
				t.Errorf("%d lookups, %d hits and misses, %d routed", c.Lookups, want, c.ExpertsRouted)
			}
		}
	}
}

// A comparison that cannot fail proves nothing: two experts that swap places
// in the file must be noticed.
func TestSwappedExpertsAreNoticed(t *testing.T) {
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	want := generate(t, baseConfig(model), "Once upon a time", steps)
	swapped := filepath.Join(modelDir, "swapped.gguf")
	swapExperts(t, model, swapped)
	cfg := baseConfig(swapped)
	cfg.MoeStream, cfg.CacheMB = true, routedShare(t, model, 0.25)
	if got := generate(t, cfg, "Once upon a time", steps); got.hash == want.hash {
		t.Errorf("experts 2 and 3 of layer 1 changed places and the logits stayed %s", got.hash)
	}
}

// swapExperts copies a model with two experts of one tensor exchanged.
func swapExperts(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	m, err := gguf.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range m.ExpertTensors {
		if e.Layer != 1 || e.Projection != "down" {
			continue
		}
		a := raw[e.Offset+2*e.SliceBytes : e.Offset+3*e.SliceBytes]
		b := raw[e.Offset+3*e.SliceBytes : e.Offset+4*e.SliceBytes]
		tmp := append([]byte(nil), a...)
		copy(a, b)
		copy(b, tmp)
	}
	if err := os.WriteFile(to, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// variant is one combination of the settings that must not change a bit.
type variant struct {
	policy, dense                      string
	overlap, direct, release, onDemand bool
	lanes, slots                       int
	share                              float64 // of the experts
}

func (v variant) String() string {
	return fmt.Sprintf("%s,%s,overlap=%v,direct=%v,release=%v,demand=%v,lanes=%d,slots=%d,%.2f", v.policy, v.dense, v.overlap, v.direct, v.release, v.onDemand, v.lanes, v.slots, v.share)
}

// matrix pairs every policy with every way of holding, reading and waiting.
func matrix() []variant {
	var out []variant
	for _, policy := range config.CachePolicies {
		for _, overlap := range []bool{false, true} {
			for _, slots := range []int{1, 2} {
				for _, dense := range []string{"mmap", "anon", "pinned"} {
					i := len(out)
					out = append(out, variant{
						policy: policy, dense: dense, overlap: overlap, slots: slots,
						lanes: []int{1, 4}[i%2], direct: i%3 != 0, release: dense != "mmap" && i%2 == 0, onDemand: i%2 == 1,
						share: []float64{0.1, 0.3, 0.6}[i/2%3],
					})
				}
			}
		}
	}
	return out
}

func (v variant) apply(t *testing.T, cfg *config.Config) {
	cfg.MoeStream, cfg.CachePolicy, cfg.DenseWeights, cfg.Overlap = true, v.policy, v.dense, v.overlap
	cfg.ODirect, cfg.ReleaseMmap, cfg.SlotsOnDemand = v.direct, v.release, v.onDemand
	cfg.IOThreads, cfg.PrefillSlots, cfg.CacheMB = v.lanes, v.slots, routedShare(t, cfg.Model, v.share)
}

// fired checks that each setting of a variant did something.
func (v variant) fired(t *testing.T, o outcome, wide bool) {
	t.Helper()
	c := &o.c
	check := func(ok bool, what string) {
		if !ok {
			t.Errorf("%v: %s", v, what)
		}
	}
	check(c.Misses > 0 && c.Evictions > 0, "nothing was evicted")
	check(c.OverlapWaits > 0 == v.overlap, fmt.Sprintf("%d waits at a matmul", c.OverlapWaits))
	check(c.DirectReads > 0 == (v.direct && o.cfg.ODirect), fmt.Sprintf("%d direct reads", c.DirectReads))
	check(c.BufferedReads > 0 == !o.cfg.ODirect, fmt.Sprintf("%d buffered reads", c.BufferedReads))
	check(c.MmapReleasedBytes > 0 == v.release, fmt.Sprintf("%d bytes unmapped", c.MmapReleasedBytes))
	check(c.DenseLockedBytes+c.DensePinRefusedBytes > 0 == (v.dense == "pinned"), "no lock was asked for")
	if wide {
		check(c.PrefillLayers > 0, "no layer went through a prefill slot")
		check(c.PrefillAhead > 0 == (v.slots == 2), fmt.Sprintf("%d layers read ahead", c.PrefillAhead))
		check(c.CacheYielded > 0 == v.onDemand, fmt.Sprintf("the cache yielded %d bytes", c.CacheYielded))
	}
}

func TestEveryCombinationEqualsResident(t *testing.T) {
	model := makeModel(t, "qwen3moe-q8_0", tiny("qwen3moe", "q8_0"))
	cases := []struct {
		prompt string
		steps  int
		wide   bool
	}{{"a", 256, false}, {words(2), 48, true}, {words(37), 16, true}}
	for _, c := range cases {
		want := generate(t, baseConfig(model), c.prompt, c.steps)
		for i, v := range matrix() {
			if !c.wide && i%2 == 1 && testing.Short() {
				continue
			}
			t.Run(fmt.Sprintf("%d/%v", len(c.prompt), v), func(t *testing.T) {
				cfg := baseConfig(model)
				v.apply(t, &cfg)
				got := generate(t, cfg, c.prompt, c.steps)
				if got.hash != want.hash {
					t.Errorf("logits differ from the resident model's")
				}
				v.fired(t, got, c.wide)
			})
		}
	}
}

// Repacked weights give stock llama.cpp's repacked bits, not the plain ones.
func TestRepackedEqualsStockRepacked(t *testing.T) {
	for _, typ := range []string{"q4_0", "q4_k"} {
		spec := tiny("qwen3moe", typ)
		spec.TiedHead = typ == "q4_0"
		model := makeModel(t, "repack-"+typ, spec)
		cfg := baseConfig(model)
		plain := generate(t, cfg, "Once upon a time", steps)
		cfg.Repack = "on"
		stock := generate(t, cfg, "Once upon a time", steps)
		cfg.MoeStream, cfg.CacheMB = true, routedShare(t, model, 0.3)
		got := generate(t, cfg, "Once upon a time", steps)
		if got.hash != stock.hash {
			t.Errorf("%s: repacked logits %s, stock's are %s", typ, got.hash, stock.hash)
		}
		if stock.hash == plain.hash {
			t.Logf("%s: repacking changes no bit on this processor", typ)
		} else if got.c.RepackedBytes == 0 || got.c.DenseRepacked == 0 {
			t.Errorf("%s: %d expert and %d dense bytes repacked", typ, got.c.RepackedBytes, got.c.DenseRepacked)
		}
	}
}

// One slot is an array of experts like any other, repacked too.
func TestOneSlotRepacked(t *testing.T) {
	spec := tiny("qwen3moe", "q4_0")
	spec.Used = 1
	cfg := baseConfig(makeModel(t, "one-slot", spec))
	cfg.Repack = "on"
	want := generate(t, cfg, "Once upon a time", steps)
	cfg.MoeStream, cfg.CacheMB = true, 0
	got := generate(t, cfg, "Once upon a time", steps)
	if got.hash != want.hash {
		t.Errorf("logits %s, the resident model's are %s", got.hash, want.hash)
	}
	slot := got.c.BytesRead / got.c.Reads * 3
	if got.c.RepackedBytes == 0 || got.c.CacheBudgetBytes >= 2*slot {
		t.Errorf("%d bytes repacked, a cache of %d bytes for experts of %d", got.c.RepackedBytes, got.c.CacheBudgetBytes, slot)
	}
}

// copyFile copies a model for tests that damage it.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
