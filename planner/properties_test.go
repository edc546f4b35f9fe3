package planner

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/planner/config"
)

// maybe draws a fact that is known about as often as share says.
func maybe[T any](rt *rapid.T, name string, g *rapid.Generator[T], share int) Fact[T] {
	if rapid.IntRange(1, 100).Draw(rt, name+"?") > share {
		return Fact[T]{}
	}
	return MeasuredFact(g.Draw(rt, name), rapid.Float64Range(0, 0.4).Draw(rt, name+"~"), "drawn")
}

func drawModel(rt *rapid.T, known int) ModelFacts {
	layers := rapid.Int64Range(1, 100).Draw(rt, "layers")
	experts := rapid.Int64Range(2, 512).Draw(rt, "experts")
	used := min(experts, rapid.Int64Range(1, 16).Draw(rt, "used"))
	slice := rapid.Int64Range(4<<10, 32<<20).Draw(rt, "slice")
	m := ModelFacts{
		Layers: DerivedFact(layers, ""), MoeLayers: DerivedFact(layers, ""), Experts: DerivedFact(experts, ""), ExpertsUsed: DerivedFact(used, ""),
		RoutedBytes: DerivedFact(3*slice*layers*experts, ""), TokenCycle: DerivedFact(3*slice*layers*used, ""), LayerExperts: DerivedFact(3*slice*experts, ""),
		DenseRead: DerivedFact(rapid.Int64Range(1<<20, 20<<30).Draw(rt, "dense"), ""), DenseRow: DerivedFact(rapid.Int64Range(0, 1<<30).Draw(rt, "row"), ""),
		LayerOther: maybe(rt, "other", rapid.Int64Range(1<<20, 1<<28), known),
		TiedHead:   maybe(rt, "tied", rapid.Bool(), known), MTPUsed: maybe(rt, "mtp", rapid.Bool(), known),
	}
	var classes []SliceClass
	for _, p := range []string{"gate", "up", "down"} {
		classes = append(classes, SliceClass{Projection: p, Quant: "Q4_0", Bytes: slice, Layers: layers, Repackable: true})
	}
	m.Slices = DerivedFact(classes, "")
	return m
}

func drawMachine(rt *rapid.T, p *Profile, known int) {
	size := rapid.Int64Range(64<<20, 400<<30)
	speed := rapid.Float64Range(1e7, 3e11)
	p.Memory = MemoryFacts{
		Available: maybe(rt, "available", size, known), LimitHeadroom: maybe(rt, "limit", size, known/2),
		Reclaim:  maybe(rt, "reclaim", rapid.SampledFrom([]Reclaim{ReclaimKill, ReclaimCompress, ReclaimSwap, ReclaimNone}), known),
		Estimate: maybe(rt, "estimate", size, known/2), Headroom: maybe(rt, "headroom", size, known/3),
	}
	p.Locks = LockFacts{
		Store: maybe(rt, "store", rapid.Bool(), known), StoreBytes: maybe(rt, "store bytes", size, known/2), InPlace: maybe(rt, "in place", size, known/2),
		UpperBound: maybe(rt, "bound", size, known/3), SharedPool: maybe(rt, "shared", rapid.Bool(), known),
	}
	p.Host = HostFacts{
		Narrow: maybe(rt, "narrow", speed, known), Wide: maybe(rt, "wide", speed, known),
		NarrowRepack: maybe(rt, "narrow repack", speed, known/2), WideRepack: maybe(rt, "wide repack", speed, known/2),
	}
	p.Overheads = OverheadFacts{PerLayer: maybe(rt, "per layer", rapid.Float64Range(0, 1e-3), known/2), RepackRate: maybe(rt, "repack", speed, known)}
	p.Buffers.Context = maybe(rt, "context", rapid.Int64Range(0, 4<<30), known)
	if slope := maybe(rt, "slope", rapid.Int64Range(1<<10, 1<<20), known); slope.OK() {
		p.Buffers.Compute = MeasuredFact([]WidthPoint{{2048, slope.Value * 2048}, {4096, slope.Value * 4096}}, 0, "drawn")
	}
	p.Storage = StorageFacts{
		Refault: maybe(rt, "refault", rapid.Float64Range(1e6, 1e9), known), ODirect: maybe(rt, "odirect", rapid.Bool(), known),
		Buffered: maybe(rt, "buffered", speed, known/2), Align: maybe(rt, "align", rapid.SampledFrom([]int64{512, 4096, 16384}), known),
	}
	if rapid.IntRange(0, 3).Draw(rt, "serialises") == 0 {
		p.Storage.MapSerialises = MeasuredFact(true, 0, "drawn")
	}
	if base := maybe(rt, "rate", rapid.Float64Range(1e8, 1e10), known); base.OK() {
		var pts []RatePoint
		for _, lanes := range []int{1, 2, 4, 8} {
			pts = append(pts, RatePoint{Size: 512 << 10, Lanes: lanes, BytesPerS: base.Value * rapid.Float64Range(0.5, 3).Draw(rt, "lanes")})
		}
		p.Storage.Curve = MeasuredFact(pts, 0.05, "drawn")
	}
}

func drawDevices(rt *rapid.T, p *Profile, known int) {
	speed := rapid.Float64Range(0, 1e12)
	for i := range rapid.IntRange(0, 2).Draw(rt, "devices") {
		d := Device{
			Name: "D" + string(rune('0'+i)), Usable: maybe(rt, "usable", rapid.Bool(), known), HostMemory: maybe(rt, "host memory", rapid.Bool(), known),
			HostPtrHonour: maybe(rt, "honour", rapid.Bool(), known), RunsExpertOp: maybe(rt, "runs", rapid.Bool(), known),
			BuffersExempt: maybe(rt, "exempt", rapid.Bool(), known), Identity: maybe(rt, "identity", rapid.Bool(), known), IdentityWide: maybe(rt, "identity wide", rapid.Bool(), known),
			Places: maybe(rt, "places", rapid.Bool(), known), Narrow: maybe(rt, "dev narrow", speed, known), Wide: maybe(rt, "dev wide", speed, known),
			FreeBytes: maybe(rt, "free", rapid.Int64Range(1<<28, 64<<30), known), SplitSeconds: maybe(rt, "split", rapid.Float64Range(0, 1e-3), known/2),
		}
		if c := maybe(rt, "dev slope", rapid.Int64Range(1<<10, 1<<20), known); c.OK() {
			d.Compute = MeasuredFact([]WidthPoint{{2048, c.Value * 2048}, {4096, c.Value * 4096}}, 0, "drawn")
		}
		p.Devices = append(p.Devices, d)
	}
	drawPlacement(rt, p, known)
}

func drawPlacement(rt *rapid.T, p *Profile, known int) {
	if len(p.Devices) == 0 || !rapid.Bool().Draw(rt, "fitted") {
		return
	}
	size := rapid.Int64Range(0, 8<<30)
	var shares []DeviceShare
	var layers int64
	for i := range p.Devices {
		s := DeviceShare{p.Devices[i].Name, rapid.Int64Range(0, 40).Draw(rt, "share"), size.Draw(rt, "share bytes")}
		shares, layers = append(shares, s), layers+s.Layers
		if rapid.Bool().Draw(rt, "takes layers") {
			d := &p.Devices[i]
			d.Usable, d.HostMemory = MeasuredFact(true, 0, ""), MeasuredFact(false, 0, "")
			d.FreeBytes, d.TotalBytes = MeasuredFact[int64](16<<30, 0, ""), MeasuredFact[int64](16<<30, 0, "")
		}
	}
	p.Placement = PlacementFacts{
		Asked: MeasuredFact(true, 0, ""), Shares: MeasuredFact(shares, 0, ""), GPULayers: MeasuredFact(layers, 0, ""),
		HostExperts: maybe(rt, "host experts", rapid.Int64Range(0, p.Model.RoutedBytes.Value), known), HostDense: maybe(rt, "host dense", size, known),
		HostContext: maybe(rt, "host context", size, known), HostCompute: maybe(rt, "host compute", size, known),
		Width: maybe(rt, "placed width", rapid.SampledFrom([]int64{128, 512, 2048}), known),
	}
}

// A placement's graphs stay inside the width that its devices have room for.
func TestPlacedWidthIsKept(t *testing.T) {
	placed := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := drawProfile(rt, 95)
		plan := mustMake(rt, p, Pins{})
		width, ok := p.Placement.Width.Get()
		if plan.Placement == nil || !ok {
			return
		}
		placed++
		if got := int64(min(plan.Config.UBatch(), plan.Config.CtxSize)); got > width {
			rt.Fatalf("graphs of %d tokens over a placement with room for %d", got, width)
		}
	})
	if placed == 0 {
		t.Error("no plan placed anything")
	}
}

func drawProfile(rt *rapid.T, known int) Profile {
	p := Profile{Model: drawModel(rt, known)}
	drawMachine(rt, &p, known)
	drawDevices(rt, &p, known)
	return p
}

// pinChoices are the knobs a caller may fix, with values worth trying.
var pinChoices = map[string][]string{
	"moe-stream": {"on", "off"}, "cache-mb": {"0", "64", "4000", "auto"}, "cache-policy": {"a2d", "lru", "layer-lru", "layer-lfu"},
	"dense-weights": {"mmap", "anon", "pinned"}, "ubatch": {"64", "512", "4096"}, "io-threads": {"1", "4", "16"}, "odirect": {"on", "off"},
	"overlap": {"on", "off"}, "expert-prefetch": {"on", "off"}, "prefill-slots": {"1", "2"}, "prefill-slots-on-demand": {"on", "off"}, "cache-pin": {"on", "off"},
	"cache-pin-fit": {"on", "off"}, "release-mmap": {"on", "off"}, "repack": {"auto", "on", "off"}, "prefill-device": {"none", "D0"},
	"threads": {"1", "8"}, "n-expert-used": {"1", "4"}, "gpu-layers": {"0", "3"}, "flash-attn": {"on", "off"}, "ctx-size": {"2048", "16384"},
}

func drawPins(rt *rapid.T) Pins {
	pins := Pins{}
	var names []string
	for name := range pinChoices {
		names = append(names, name)
	}
	slices.Sort(names)
	for range rapid.IntRange(0, 5).Draw(rt, "pins") {
		name := rapid.SampledFrom(names).Draw(rt, "pin")
		pins[name] = rapid.SampledFrom(pinChoices[name]).Draw(rt, "value")
	}
	return pins
}

func mustMake(rt *rapid.T, p Profile, pins Pins) Plan {
	plan, err := Make(p, config.Default(), pins, DefaultPolicy())
	if err != nil {
		rt.Fatal(err)
	}
	return plan
}

func TestEveryDecisionIsComplete(t *testing.T) {
	topic := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	rapid.Check(t, func(rt *rapid.T) {
		plan := mustMake(rt, drawProfile(rt, 70), drawPins(rt))
		seen := map[string]bool{}
		for _, d := range plan.Decisions {
			if d.Knob == "" || d.Value == "" || d.Provenance == "" || d.Reason == "" || d.Brief == "" || !topic.MatchString(d.Topic) {
				rt.Fatalf("incomplete: %+v", d)
			}
			if strings.Contains(d.Brief, "--") {
				rt.Fatalf("brief names a flag: %q", d.Brief)
			}
			if _, knob := config.Lookup(d.Knob); knob && seen[d.Knob] {
				rt.Fatalf("two decisions about %s", d.Knob)
			}
			seen[d.Knob] = true
		}
	})
}

func TestPinsAreNeverChanged(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pins := drawPins(rt)
		plan := mustMake(rt, drawProfile(rt, 80), pins)
		for name, text := range pins {
			if text == "auto" {
				continue // asks for a decision
			}
			p, _ := config.Lookup(name)
			want := config.Default()
			if err := p.Set(&want, text); err != nil {
				rt.Fatal(err)
			}
			if p.Get(&plan.Config) != p.Get(&want) {
				rt.Fatalf("pin %s=%s became %s", name, text, p.Get(&plan.Config))
			}
			if d := decision(plan, name); d.Provenance != Operator {
				rt.Fatalf("pin %s is attributed to %q", name, d.Provenance)
			}
		}
		if _, ok := pins["n-expert-used"]; !ok && plan.Config.NExpertUsed != 0 {
			rt.Fatal("a plan armed something lossy")
		}
	})
}

func TestSameFactsSameBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, pins := drawProfile(rt, 80), drawPins(rt)
		a, _ := json.Marshal(mustMake(rt, p, pins))
		b, _ := json.Marshal(mustMake(rt, p, pins))
		if !bytes.Equal(a, b) {
			rt.Fatalf("two plans from one input:\n%s\n%s", a, b)
		}
	})
}

func TestReproductionLineGivesTheSameConfig(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plan := mustMake(rt, drawProfile(rt, 90), drawPins(rt))
		got := config.Default()
		for i := 0; i < len(plan.Reproduce); i++ {
			name := strings.TrimPrefix(plan.Reproduce[i], "--")
			p, ok := config.Lookup(name)
			text := "on"
			switch {
			case !ok:
				for _, q := range config.Table() {
					if q.OffFlag() == name {
						p, text = &q, "off"
					}
				}
			case p.Kind != config.Bool:
				i++
				text = plan.Reproduce[i]
			}
			if p == nil {
				rt.Fatalf("%s is no flag", plan.Reproduce[i])
			}
			if err := p.Set(&got, text); err != nil {
				rt.Fatal(err)
			}
		}
		if diff := cmp.Diff(plan.Config, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// overPins are the pins that may ask for more than the ceilings allow.
var overPins = []string{"cache-mb", "dense-weights", "ubatch", "prefill-slots", "prefill-slots-on-demand", "prefill-device", "cache-pin", "cache-pin-fit", "moe-stream", "ctx-size", "gpu-layers"}

func TestLedgerStaysUnderBothCeilings(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pins := drawPins(rt)
		for _, name := range overPins {
			delete(pins, name)
		}
		plan := mustMake(rt, drawProfile(rt, 90), pins)
		sums := map[string]int64{}
		limits := map[string]int64{}
		for _, r := range plan.Ledger {
			if r.Ceiling == CeilingLimit {
				limits[r.Note] = r.Bytes
				continue
			}
			if r.Row == "free" && r.Bytes < 0 && plan.Config.MoeStream {
				rt.Fatalf("%s: %d bytes over: %+v", r.Ceiling, -r.Bytes, plan.Ledger)
			}
			sums[r.Ceiling] += r.Bytes
		}
		for _, ceiling := range []string{CeilingHoldable, CeilingLockable} {
			if limit, ok := limits[ceiling]; ok && sums[ceiling] != limit {
				rt.Fatalf("%s rows add up to %d, the ceiling is %d: %+v", ceiling, sums[ceiling], limit, plan.Ledger)
			}
		}
		var free int64
		for _, r := range plan.Ledger {
			if r.Row == "free" && r.Ceiling == CeilingHoldable {
				free = r.Bytes
			}
		}
		if turn := sums[CeilingInTurn]; turn > 0 && turn > ledger(plan, "expert cache", CeilingHoldable)+free {
			rt.Fatalf("%d bytes in turn find no room: %+v", turn, plan.Ledger)
		}
	})
}

func TestMoreMemoryIsNeverSlower(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawProfile(rt, 95)
		pins := drawPins(rt)
		for _, name := range []string{"cache-mb", "moe-stream", "prefill-slots-on-demand", "repack"} {
			delete(pins, name)
		}
		pins["prefill-device"], pins["ubatch"], pins["dense-weights"] = "none", "512", "anon"
		less := rapid.Int64Range(64<<20, 200<<30).Draw(rt, "less")
		more := less + rapid.Int64Range(0, 200<<30).Draw(rt, "more")
		p.Memory.Headroom, p.Memory.LimitHeadroom = MeasuredFact(less, 0, "drawn"), Fact[int64]{}
		a := mustMake(rt, p, pins)
		p.Memory.Headroom = MeasuredFact(more, 0, "drawn")
		b := mustMake(rt, p, pins)
		ta, tb := a.Prediction.DecodeSPerToken, b.Prediction.DecodeSPerToken
		if ta.Known && tb.Known && tb.Point > ta.Point*(1+1e-9) {
			rt.Fatalf("%d bytes: %g s (%s, %s)\n%d bytes: %g s (%s, %s)", less, ta.Point, a.Regime, ta.Basis, more, tb.Point, b.Regime, tb.Basis)
		}
	})
}

func TestUnknownEverythingIsTheDefault(t *testing.T) {
	plan, err := Make(Profile{}, config.Default(), Pins{}, DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(), plan.Config); diff != "" {
		t.Errorf("knobs armed on no facts:\n%s", diff)
	}
	if len(plan.Reproduce) != 0 {
		t.Errorf("reproduce %v", plan.Reproduce)
	}
}

// deciding names the facts each knob may turn on; a knob that moved off its
// default while all of them are unknown was armed by nothing.
var deciding = map[string][]string{
	"io-threads": {"storage.rate"}, "odirect": {"storage.odirect"}, "release-mmap": {"storage.mapping-serialises"},
	"dense-weights": {"memory.reclaim"}, "ubatch": {"buffers.compute"}, "repack": {"host.narrow-repack"},
	"gpu-layers": {"placement.shares"}, "moe-stream": {"memory.available", "memory.limit-headroom", "memory.headroom-measured"},
}

func TestAnUnknownArmsNothing(t *testing.T) {
	for knob, facts := range deciding {
		t.Run(knob, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				p := drawProfile(rt, 95)
				for _, e := range p.entries() {
					if slices.Contains(facts, e.name) {
						if err := e.fact.(interface {
							amend(word, value string) error
						}).amend("forget", ""); err != nil {
							rt.Fatal(err)
						}
					}
				}
				plan := mustMake(rt, p, Pins{})
				param, _ := config.Lookup(knob)
				def := config.Default()
				d := decision(plan, knob)
				other := []string{"dense-mapped", "ubatch-narrow", "ubatch-placed", "repack-no-room"} // turn on other facts
				if param.Get(&plan.Config) != param.Get(&def) && !slices.Contains(other, d.Topic) {
					rt.Fatalf("%s = %s without %v: %s", knob, d.Value, facts, d.Reason)
				}
			})
		})
	}
}
