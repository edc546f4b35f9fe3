package probes

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/engine/synth"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
)

// written makes a small model and its configuration.
func written(t *testing.T, edit func(*synth.Spec)) config.Config {
	t.Helper()
	s := synth.Default()
	s.Layers, s.Experts, s.Used, s.Embd, s.FF, s.Vocab = 3, 16, 4, 256, 256, 512
	if edit != nil {
		edit(&s)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	sum, err := synth.Write(t.Context(), path, s, synth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Model = sum.Files[0]
	return c
}

// scriptedEngine records the order in which it is asked.
type scriptedEngine struct {
	asked []string
	host  float64
}

func (e *scriptedEngine) Backends(context.Context, *model.Model, config.Config) planner.BackendFacts {
	e.asked = append(e.asked, "backends")
	return planner.BackendFacts{Looked: planner.MeasuredFact(true, 0, "scripted")}
}

func (e *scriptedEngine) Devices(context.Context, *model.Model, config.Config) []planner.Device {
	e.asked = append(e.asked, "devices")
	return []planner.Device{{Name: "Fake0", Usable: planner.MeasuredFact(false, 0, "UNUSABLE")}}
}

func (e *scriptedEngine) Bandwidth(_ context.Context, _ *model.Model, _ config.Config, p *planner.Profile) {
	e.asked = append(e.asked, "bandwidth")
	p.Host.Narrow = planner.MeasuredFact(e.host, 0.01, "scripted")
	p.Overheads.Nodes = planner.MeasuredFact[int64](123, 0, "scripted")
}

func (e *scriptedEngine) Buffers(context.Context, *model.Model, config.Config) planner.BufferFacts {
	e.asked = append(e.asked, "buffers")
	return planner.BufferFacts{Context: planner.MeasuredFact[int64](1<<20, 0, "scripted")}
}

func (e *scriptedEngine) Placement(_ context.Context, _ *model.Model, _ config.Config, d []planner.Device) planner.PlacementFacts {
	e.asked = append(e.asked, "placement of "+d[0].Name)
	return planner.PlacementFacts{}
}

func TestTheSequenceKeepsItsOrder(t *testing.T) {
	cfg := written(t, nil)
	var order []string
	e := &scriptedEngine{host: 1e10}
	p, err := Probe(t.Context(), cfg, Options{
		NoIO: true, Engine: e, Host: recorded(t, "container-v2", nil),
		Progress: func(s string) { order = append(order, s) },
		Learn: func(_ context.Context, _ *model.Model, p *planner.Profile) error {
			p.Hits.Fit = planner.MeasuredFact(planner.HitFit{K: 3}, 0, "scripted")
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"model", "memory", "cores", "locks", "backends", "devices", "bandwidth", "buffers", "placement", "storage", "headroom", "learned"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if want := []string{"backends", "devices", "bandwidth", "buffers", "placement of Fake0"}; !slices.Equal(e.asked, want) {
		t.Errorf("the engine was asked %v, want %v", e.asked, want)
	}
	if p.Host.Narrow.Value != 1e10 || p.Overheads.Nodes.Value != 123 || p.Hits.Fit.Value.K != 3 || len(p.Devices) != 1 {
		t.Errorf("profile lost something: %+v %+v %+v", p.Host, p.Overheads, p.Hits)
	}
	if p.Memory.LimitBytes.Value != 7*gib/2 {
		t.Errorf("memory was not read from the recorded machine: %+v", p.Memory.LimitBytes)
	}
	unknown(t, p.Storage.Curve, "turned off")
}

// Without an engine, a drive or a ledger every fact still says why it is
// unknown, and what would settle it unless nothing would.
func TestEveryFactIsKnownOrSaysWhy(t *testing.T) {
	p, err := Probe(t.Context(), written(t, nil), Options{NoIO: true, Host: recorded(t, "desktop-swap-disk", nil)})
	if err != nil {
		t.Fatal(err)
	}
	settled := []string{"memory.limit-headroom"} // unknown because there is no limit
	for _, f := range p.Facts() {
		if f.Reason == "" || f.Reason == "nobody looked" {
			t.Errorf("%s is %s and nobody said how or why", f.Name, f.State)
		}
		if f.State == "unknown" && f.Owed == "" && !slices.Contains(settled, f.Name) {
			t.Errorf("%s is unknown (%s) and owes no measurement", f.Name, f.Reason)
		}
		if f.State != "unknown" && f.Provenance != planner.Measured && f.Provenance != planner.Derived {
			t.Errorf("%s is known with provenance %q", f.Name, f.Provenance)
		}
	}
}

func TestProbeAndPlanKeepsPins(t *testing.T) {
	cfg := written(t, nil)
	cfg.IOThreads = 3
	_, plan, err := ProbeAndPlan(t.Context(), cfg, planner.Pins{"io-threads": "3"}, Options{NoIO: true, Host: recorded(t, "container-v2", nil)})
	if err != nil {
		t.Fatal(err)
	}
	if plan.Config.IOThreads != 3 || len(plan.Decisions) == 0 {
		t.Errorf("plan %+v", plan)
	}
}

func TestProbeRefusesWithTheFlag(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		"":                               "type -m FILE",
		filepath.Join(dir, "absent"):     "no such file",
		dir:                              "-m",
		"testdata/machines/laptop.txtar": "no such file",
		"doc.go":                         "GGUF",
	} {
		c := config.Default()
		c.Model = path
		_, err := Probe(t.Context(), c, Options{NoIO: true})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-m %q: %v, want %q", path, err, want)
		}
	}
}

func TestProbeStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var last string
	_, err := Probe(ctx, written(t, nil), Options{NoIO: true, Host: recorded(t, "container-v2", nil), Progress: func(s string) {
		if last = s; s == "locks" {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || last != "locks" {
		t.Errorf("err %v after %s", err, last)
	}
}

func TestLearningThatFailsCostsOnlyItsFacts(t *testing.T) {
	p, err := Probe(t.Context(), written(t, nil), Options{
		NoIO: true, Host: recorded(t, "container-v2", nil),
		Learn: func(context.Context, *model.Model, *planner.Profile) error { return errors.New("database is corrupt") },
	})
	if err != nil {
		t.Fatal(err)
	}
	unknown(t, p.Hits.Fit, "database is corrupt")
	if !p.Memory.Holdable.OK() {
		t.Error("memory facts went missing too")
	}
}
