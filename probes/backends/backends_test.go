package backends

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/engine/synth"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
	"github.com/bmoe/bmoe/probes"
)

// modeEnv makes this test binary a device's child that behaves in some way;
// modelEnv is the model it is asked about.
const (
	modeEnv  = "BMOE_TEST_MODE"
	modelEnv = "BMOE_TEST_MODEL"
)

func TestMain(m *testing.M) {
	mode := os.Getenv(modeEnv)
	if mode == "" {
		os.Exit(m.Run())
	}
	switch mode {
	case "answer":
		c := config.Default()
		c.Model, c.Threads, c.CtxSize = os.Getenv(modelEnv), 1, 2048
		if err := Child(context.Background(), c, Host, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "device":
		c := config.Default()
		c.Model, c.Threads, c.CtxSize, c.RPC = os.Getenv(modelEnv), 1, 1024, valueOf("--rpc")
		name := strings.TrimPrefix(os.Args[2], "--"+DeviceFlag+"=")
		if err := Child(context.Background(), c, name, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "crash":
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	case "hang":
		time.Sleep(time.Hour)
	case "nonsense":
		fmt.Println("segmentation something")
	}
}

// valueOf finds a flag's value in the child's arguments.
func valueOf(flag string) string {
	if i := slices.Index(os.Args, flag); i >= 0 && i+1 < len(os.Args) {
		return os.Args[i+1]
	}
	return ""
}

// child starts this binary in a mode.
func child(t *testing.T, mode, path string, limit time.Duration) probes.Child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return probes.Self(exe, limit, modeEnv+"="+mode, modelEnv+"="+path)
}

// tiny writes a model of a few MB and opens its layout.
func tiny(t *testing.T, edit func(*synth.Spec)) *model.Model {
	t.Helper()
	s := synth.Default()
	s.Layers, s.Experts, s.Used, s.Embd, s.FF, s.Vocab = 3, 16, 4, 256, 256, 512
	if edit != nil {
		edit(&s)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if _, err := synth.Write(t.Context(), path, s, synth.Options{}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestHostAnswersThroughAChild(t *testing.T) {
	m := tiny(t, nil)
	e := New(child(t, "answer", m.Path, 2*time.Minute))
	cfg := config.Default()
	cfg.Model, cfg.CtxSize = m.Path, 2048
	b := e.Backends(t.Context(), m, cfg)
	if planner.Ask(b.Looked) != planner.Yes || !b.Loaded.OK() {
		t.Fatalf("backends = %+v", b)
	}
	p := planner.Profile{Model: probes.Local().ModelFacts(m)}
	e.Bandwidth(t.Context(), m, cfg, &p)
	for name, f := range map[string]planner.Fact[float64]{"narrow": p.Host.Narrow, "wide": p.Host.Wide, "copy": p.Host.CopyRate} {
		if v, ok := f.Get(); !ok || v < 1e6 || v > 1e13 || f.MeasuredAt == "" {
			t.Errorf("%s = %+v", name, f)
		}
	}
	if p.Host.NarrowRepack.OK() != p.Model.Slices.Value[0].Repackable {
		t.Errorf("repacked rate %+v, but repackable is %v", p.Host.NarrowRepack, p.Model.Slices.Value[0].Repackable)
	}
	if !p.Overheads.PerNode.OK() || p.Overheads.Nodes.Or(0) < 30 {
		t.Errorf("per node %+v, nodes %+v", p.Overheads.PerNode, p.Overheads.Nodes)
	}
	buf := e.Buffers(t.Context(), m, cfg)
	checkBuffers(t, m, buf)
}

// checkBuffers compares the projection with the cache's own arithmetic and
// asks that a wider graph costs more.
func checkBuffers(t *testing.T, m *model.Model, buf planner.BufferFacts) {
	t.Helper()
	facts := probes.Local().ModelFacts(m)
	want := (facts.KElems.Value + facts.VElems.Value) * 2 * 2048
	if got := buf.Context.Or(0); got != want {
		t.Errorf("context = %d, the f16 cache of 2048 tokens takes %d", got, want)
	}
	points := buf.Compute.Value
	if len(points) != 3 || points[0].Width != 512 || points[2].Width != 2048 {
		t.Fatalf("compute = %+v, want 512, 1024 and 2048 wide", buf.Compute)
	}
	if points[0].Bytes <= 0 || points[1].Bytes <= points[0].Bytes || points[2].Bytes <= points[1].Bytes {
		t.Errorf("compute does not grow with the width: %+v", points)
	}
}

func TestHostThatDies(t *testing.T) {
	m := tiny(t, nil)
	for mode, want := range map[string]string{"crash": "signal 9", "hang": "did not answer", "nonsense": "something else"} {
		limit := 30 * time.Second // of a child that does answer, on a slow machine
		if mode == "hang" {
			limit = time.Second
		}
		e := New(child(t, mode, m.Path, limit))
		cfg := config.Default()
		b := e.Backends(t.Context(), m, cfg)
		var p planner.Profile
		e.Bandwidth(t.Context(), m, cfg, &p)
		buf := e.Buffers(t.Context(), m, cfg)
		for name, reason := range map[string]string{"looked": b.Looked.Reason, "narrow": p.Host.Narrow.Reason, "wide": p.Host.Wide.Reason, "context": buf.Context.Reason} {
			if !strings.Contains(reason, want) {
				t.Errorf("%s: %s is unknown because %q, want %q", mode, name, reason, want)
			}
		}
		if planner.Ask(b.Looked) != planner.DontKnow || p.Host.Narrow.OK() || buf.Context.OK() {
			t.Errorf("%s: something is known of a child that did not answer", mode)
		}
		if d := e.Devices(t.Context(), m, cfg); d != nil {
			t.Errorf("%s: devices %+v", mode, d)
		}
	}
}

// scripted is a child that answers each device from a table.
func scripted(t *testing.T, answers map[string]any) (probes.Child, *[]string) {
	var asked []string
	return func(_ context.Context, args []string) ([]byte, error) {
		i := slices.IndexFunc(args, func(s string) bool { return strings.HasPrefix(s, "--"+DeviceFlag+"=") })
		name := strings.TrimPrefix(args[i], "--"+DeviceFlag+"=")
		asked = append(asked, name)
		switch a := answers[name].(type) {
		case error:
			return nil, a
		case nil:
			t.Errorf("%s was asked", name)
			return nil, errors.New("not in the script")
		default:
			return json.Marshal(a)
		}
	}, &asked
}

func TestDevicesFromTheirChildren(t *testing.T) {
	m := tiny(t, nil)
	gpu := func(name string, free int64, host bool) device.Info {
		return device.Info{Name: name, Backend: "X", Kind: device.GPU, Free: free, Total: free, HostMemory: host}
	}
	good, bad := &device.Rate{BytesPerS: 5e10, NMSE: 1e-7}, &device.Rate{BytesPerS: 9e11, NMSE: 0.9}
	list := []device.Info{{Name: "CPU", Kind: device.CPU, Backend: "CPU"}, gpu("Good0", 8<<30, false), gpu("Wrong0", 0, true), gpu("Dead0", 4<<30, false), gpu("Slow0", 4<<30, false)}
	ask, asked := scripted(t, map[string]any{
		"CPU":    &answer{Report: &device.Report{Info: list[0], Devices: list, Narrow: good}},
		"Good0":  &answer{Report: &device.Report{Info: list[1], Narrow: good, Wide: good, RunsAll: true, Against: "the CPU backend"}, Memory: &topology{planner.No, "held"}},
		"Wrong0": &answer{Report: &device.Report{Info: list[2], Narrow: bad, Why: map[string]string{"wide": "the device does not run the expert matmul in q4_0"}}, Memory: &topology{planner.Yes, "integrated"}},
		"Dead0":  &probes.ChildError{Signal: "signal 11: segmentation fault"},
		"Slow0":  &probes.ChildError{Timeout: 2 * time.Minute},
	})
	devices := New(ask).Devices(t.Context(), m, config.Default())
	if want := []string{"CPU", "Good0", "Wrong0", "Dead0", "Slow0"}; !slices.Equal(*asked, want) {
		t.Fatalf("asked %v, want %v: the host first, every device once, in its own child", *asked, want)
	}
	type shown struct{ usable, runs, same, sameWide, hostMem planner.Tri }
	want := []shown{
		{planner.Yes, planner.Yes, planner.Yes, planner.Yes, planner.No},
		{planner.Yes, planner.No, planner.No, planner.DontKnow, planner.Yes},
		{planner.No, planner.DontKnow, planner.DontKnow, planner.DontKnow, planner.DontKnow},
		{planner.No, planner.DontKnow, planner.DontKnow, planner.DontKnow, planner.DontKnow},
	}
	for i, d := range devices {
		got := shown{planner.Ask(d.Usable), planner.Ask(d.RunsExpertOp), planner.Ask(d.Identity), planner.Ask(d.IdentityWide), planner.Ask(d.HostMemory)}
		if diff := cmp.Diff(want[i], got, cmp.AllowUnexported(shown{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", d.Name, diff)
		}
	}
	if devices[1].Narrow.OK() || !strings.Contains(devices[1].Narrow.Reason, "wrong") {
		t.Errorf("a wrong result's rate was believed: %+v", devices[1].Narrow)
	}
	if devices[1].FreeBytes.OK() || devices[1].HostPtr.OK() {
		t.Errorf("no stated size and no advertisement are unknown: %+v %+v", devices[1].FreeBytes, devices[1].HostPtr)
	}
	if !strings.HasPrefix(devices[2].Usable.Reason, "its probe ended") || !strings.Contains(devices[2].Usable.Reason, "signal 11") ||
		!strings.Contains(devices[3].Usable.Reason, "did not answer in 2m0s") {
		t.Errorf("reasons %q, %q", devices[2].Usable.Reason, devices[3].Usable.Reason)
	}
}

func TestSpecSpeaksForMostBytes(t *testing.T) {
	m := tiny(t, func(s *synth.Spec) { s.Type, s.Mixed = "q4_0", true })
	s, ok := specOf(m, 3, 0)
	if !ok || s.Threads != 3 || len(s.Classes) < 2 {
		t.Fatalf("spec = %+v", s)
	}
	bytesOf := map[uint32]int64{}
	for i := range m.ExpertTensors {
		bytesOf[m.ExpertTensors[i].Type] += m.ExpertTensors[i].Bytes
	}
	for typ, n := range bytesOf {
		if n > 2*bytesOf[s.Shape.Type] {
			t.Errorf("type %d with %d bytes speaks for the model, type %d has %d", s.Shape.Type, bytesOf[s.Shape.Type], typ, n)
		}
	}
	if small, _ := specOf(m, 1, 16<<20); small.Sweep != 2<<20 {
		t.Errorf("sweep = %d with 16 MiB to hold, want an eighth", small.Sweep)
	}
}

func TestChildRefuses(t *testing.T) {
	m := tiny(t, nil)
	c := config.Default()
	for name, edit := range map[string]func(*config.Config, *string){
		"no model was named":         func(c *config.Config, _ *string) { c.Model = "" },
		"no such file":               func(c *config.Config, _ *string) { c.Model = "/no/such.gguf" },
		`no device is called "Moon"`: func(_ *config.Config, dev *string) { *dev = "Moon" },
	} {
		cfg, dev := c, Host
		cfg.Model = m.Path
		edit(&cfg, &dev)
		var out bytes.Buffer
		err := Child(t.Context(), cfg, dev, nil, &out)
		if err == nil || !strings.Contains(err.Error(), name) || out.Len() > 0 {
			t.Errorf("err = %v, output %q, want %q", err, out.String(), name)
		}
	}
}

func TestChildIsToldNothingOfTheCaller(t *testing.T) {
	c := config.Default()
	c.Model, c.Prompt, c.Stop, c.Threads = "m.gguf", "secret", []string{"secret"}, 7
	got := args(c, "Vulkan0", "")
	if strings.Contains(strings.Join(got, " "), "secret") {
		t.Errorf("args %q carry the prompt", got)
	}
	if got[0] != "probe" || got[1] != "--device=Vulkan0" || !slices.Contains(got, "--threads") {
		t.Errorf("args %q", got)
	}
}
