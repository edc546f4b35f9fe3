package record

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/planner"
)

func TestCanonical(t *testing.T) {
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{"keys are sorted", map[string]any{"b": 1, "a": map[string]any{"d": 2, "c": nil}}, `{"a":{"c":null,"d":2},"b":1}`},
		{"64-bit integers keep their digits", []int64{1<<53 + 1, math.MaxInt64, math.MinInt64}, `[9007199254740993,9223372036854775807,-9223372036854775808]`},
		{"floats are shortest", []float64{0.1, 1e21, 1e-9, 100}, `[0.1,1e+21,1e-9,100]`},
		{"no HTML escapes", "a<b>&c", `"a<b>&c"`},
		{"struct order does not matter", struct {
			Z int `json:"z"`
			A int `json:"a"`
		}{1, 2}, `{"a":2,"z":1}`},
	} {
		got, err := Canonical(c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, got, err, c.want)
		}
		again, err := Canonicalise(got)
		if err != nil || string(again) != c.want {
			t.Errorf("%s: canonical form of the canonical form: %s, %v", c.name, again, err)
		}
	}
	if _, err := Canonicalise([]byte(`{} {}`)); err == nil {
		t.Error("two documents have one canonical form")
	}
	if id := ID(math.NaN()); id != "" {
		t.Errorf("NaN has the id %s", id)
	}
	if ID(int64(1<<53+1)) == ID(int64(1<<53)) {
		t.Error("two integers have one id")
	}
}

// Ids are what files of different machines and versions are merged by: they
// must not change.
func TestMachineIdentity(t *testing.T) {
	m := Machine{OS: "linux", Arch: "amd64", CPU: "Example CPU", Cores: 2, Threads: 4, RAMBytes: 8 << 30, Storage: "disk"}
	const want = "08f7431f84075d9a794fe90dad2e0af56809ecad81c2f4c478b2bfcfd39c123c"
	if got := m.ContentID(); got != want {
		t.Errorf("the id of a machine changed to %s", got)
	}
	same := m
	same.ID, same.Label = "whatever", "alice's laptop"
	if same.ContentID() != want {
		t.Error("a label or an old id is part of the identity")
	}
	for name, change := range map[string]func(*Machine){
		"processor": func(m *Machine) { m.CPU = "Other" }, "memory": func(m *Machine) { m.RAMBytes *= 2 },
		"cores": func(m *Machine) { m.Cores++ }, "drive": func(m *Machine) { m.Storage = "other" },
	} {
		other := m
		change(&other)
		if other.ContentID() == want {
			t.Errorf("another %s is the same machine", name)
		}
	}
}

func TestModelIdentity(t *testing.T) {
	m := Model{Name: "a.gguf", Arch: "qwen3moe", Bytes: 1 << 30, Layers: 4}
	renamed := m
	renamed.Name = "b.gguf"
	if m.ContentID() != renamed.ContentID() {
		t.Error("renaming a file makes another model")
	}
	if m.ID = "from-its-content"; m.ContentID() != "from-its-content" {
		t.Error("the id taken from the file is not kept")
	}
}

func TestRunIdentity(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 5, time.FixedZone("far", 3600))
	run := Run{StartedAt: at, State: StateDone, Text: "once", Tokens: []int32{1, 2}, Error: "open /home/alice/x: no", Plan: &planner.Plan{Reproduce: []string{"-m", "/home/alice/x"}}}
	id := run.ContentID()
	private := run
	private.Text, private.Machine.Label, private.Config.Model = "another text", "box", "/srv/x"
	private.Plan = &planner.Plan{Reproduce: []string{"-m", "/srv/x"}}
	private.StartedAt = at.UTC()
	if private.ContentID() != id {
		t.Error("private text or a time zone takes part in the id")
	}
	if other := run; func() bool { other.Tokens = []int32{1, 3}; return other.ContentID() == id }() {
		t.Error("other tokens, same id")
	}
	if RunContentID(run, "e", Slot{Arm: "1"}, 1) == id || RunContentID(run, "e", Slot{Arm: "1"}, 1) == RunContentID(run, "e", Slot{Arm: "2"}, 1) {
		t.Error("the place in an experiment takes no part in the id")
	}
	if run.Plan.Reproduce == nil || run.Error != "open /home/alice/x: no" {
		t.Error("taking a run apart changed it")
	}
	run.Measured.HitRate = math.Inf(1)
	if run.ContentID() != "" {
		t.Error("an infinite hit rate has an id")
	}
}

func TestScrub(t *testing.T) {
	for in, want := range map[string]string{
		"open /home/alice/m.gguf: no such file":      "open <path>: no such file",
		"model ~/models/x.gguf is cut short":         "model <path> is cut short",
		`bad C:\Users\bob\m.gguf here`:               "bad <path> here",
		"reading './a b/c.gguf' failed":              "reading '<path> <path>' failed",
		"no route to rpc.example.org:50052 now":      "no route to <path> now",
		"alice@example.org said so":                  "<path> said so",
		"read tcp 10.0.0.7:41->[fe80::1%e0]:502: no": "read tcp <path>-><path>: no",
		"at 192.168.1.4, build 0.4.0 of 1.2.3":       "at <path>, build 0.4.0 of 1.2.3",
		"1.5 GB/s at 4 lanes, 3/4 of the cache":      "1.5 GB/s at 4 lanes, 3/4 of the cache",
		"2026-03-01 12:00:00 cache of 64 MiB":        "2026-03-01 12:00:00 cache of 64 MiB",
		"tokens/s fell, read/write mix, and/or":      "tokens/s fell, read/write mix, and/or",
		"killed by signal 9 (memory limit 2 GiB)":    "killed by signal 9 (memory limit 2 GiB)",
	} {
		if got := Scrub(in); got != want {
			t.Errorf("Scrub(%q)\n got %q\nwant %q", in, got, want)
		}
	}
	if BaseName(`C:\models\x.gguf`) != "x.gguf" || BaseName("/a/b") != "b" || BaseName("") != "" || BaseName("plain") != "plain" {
		t.Error("BaseName keeps folders")
	}
}

func TestSamplesComeBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		col := rapid.SliceOf(rapid.Int64())
		empty := func(c []int64) []int64 {
			if len(c) == 0 {
				return nil
			}
			return c
		}
		s := Samples{empty(col.Draw(rt, "ns")), empty(col.Draw(rt, "wait")), empty(col.Draw(rt, "manage"))}
		blob, n := PackSamples(s)
		if want := max(len(s.NS), len(s.WaitNS), len(s.ManageNS)); n != want {
			rt.Fatalf("%d samples, want %d", n, want)
		}
		back, err := UnpackSamples(blob)
		if err != nil || !cmp.Equal(s, back) {
			rt.Fatalf("%v, %v", back, err)
		}
		tokens := rapid.SliceOfN(rapid.Int32(), 1, -1).Draw(rt, "tokens")
		if back, err := UnpackTokens(PackTokens(tokens)); err != nil || !cmp.Equal(tokens, back) {
			rt.Fatalf("%v, %v", back, err)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	blob, _ := PackSamples(Samples{NS: []int64{1e7, 2e7}, WaitNS: []int64{5}})
	f.Add(blob)
	f.Add(PackTokens([]int32{1, 2, -3}))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, blob []byte) {
		if s, err := UnpackSamples(blob); err == nil && len(s.NS)+len(s.WaitNS)+len(s.ManageNS) > len(blob) {
			t.Errorf("%d values in %d bytes", len(s.NS), len(blob))
		}
		if tokens, err := UnpackTokens(blob); err == nil && len(tokens) > len(blob) {
			t.Errorf("%d tokens in %d bytes", len(tokens), len(blob))
		}
	})
}

func TestPrivatePartsAreNotInTheBody(t *testing.T) {
	run := Run{Machine: Machine{Label: "secret-host"}, Stderr: "secret stderr", Text: "secret text", Error: "at /secret/path", Warnings: []string{"see /secret/w", "/secret/my model: slow", "the folder /secret/ is"}}
	run.Config.File, run.Config.Model, run.Config.Prompt, run.Config.Stop = "/secret/my model", "/secret/model", "secret prompt", []string{"secret stop"}
	run.Pins = planner.Pins{"model": "/secret/model", "io-threads": "4"}
	run.Config.RPC = "secret:7,[fe80::5ec2]:50052"
	said := []planner.Decision{
		{Knob: "model", Value: "/secret/model", Brief: "Kept as you set it: /secret/model."},
		{Knob: "device", Value: "RPC0", Brief: "Device RPC0 is out.", Reason: "--rpc secret:7: no, nor [fe80::5ec2]:50052, at 10.0.0.7:7->10.0.0.8:50052"},
	}
	run.Plan = &planner.Plan{Config: run.Config, Decisions: said, Reproduce: []string{"/secret/model"}}
	run.Model.Name = "/secret/dir/name.gguf"
	p, err := Dissect(run, "", Slot{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []Part{p.Run, p.Machine, p.Build, p.Model, p.EnvBefore, p.EnvAfter, p.Config, p.Plan, p.Prediction} {
		for _, secret := range []string{"secret", "fe80", "10.0.0"} {
			if strings.Contains(string(part.Body), secret) {
				t.Errorf("a public part holds a secret: %s", part.Body)
			}
		}
	}
	var plan planner.Plan
	var kept Private
	if err := errors.Join(json.Unmarshal(p.Plan.Body, &plan), json.Unmarshal(p.Private, &kept)); err != nil {
		t.Fatal(err)
	}
	if kept.RestorePlan(&plan); !cmp.Equal(said, plan.Decisions) {
		t.Errorf("restored: %s", cmp.Diff(said, plan.Decisions))
	}
	e := Experiment{Machine: run.Machine, Model: run.Model, Arms: []Arm{{Name: "a", Config: run.Config}}}
	exp, private, err := DissectExperiment(e)
	if err != nil || strings.Contains(string(exp.Body), "secret") || !strings.Contains(string(private), "secret prompt") {
		t.Errorf("experiment: %s, %s, %v", exp.Body, private, err)
	}
}
