package planner

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/planner/config"
)

func TestFactLines(t *testing.T) {
	p := Profile{Devices: []Device{{Name: "A"}, {Name: "B"}}}
	p.Memory.Holdable = MeasuredFact(int64(7), 0.02, "read").Timed(0.5, "2026-01-02T03:04:05Z")
	p.Storage.ODirect = MeasuredFact(false, 0, "refused")
	p.Model.TiedHead = DerivedFact(true, "no output tensor")
	p.Locks.InPlace = UnknownFact[int64]("denied", "run as another user")
	seen := map[string]FactLine{}
	for _, l := range p.Facts() {
		if l.Name == "" || l.Reason == "" && l.Provenance == Unprobed || l.Provenance == "" {
			t.Errorf("incomplete line %+v", l)
		}
		if _, twice := seen[l.Name]; twice {
			t.Errorf("%s is printed twice", l.Name)
		}
		seen[l.Name] = l
	}
	for name, want := range map[string]string{
		"memory.holdable": "known", "storage.odirect": "no", "model.tied-head": "yes", "locks.in-place": "unknown", "device.B.wide": "unknown",
	} {
		if seen[name].State != want {
			t.Errorf("%s is %q, want %q", name, seen[name].State, want)
		}
	}
	if l := seen["locks.in-place"]; l.Value != nil || l.Owed == "" {
		t.Errorf("an unknown fact has a value or owes nothing: %+v", l)
	}
	if l := seen["memory.holdable"]; l.CostS != 0.5 || l.Unit != "bytes" || l.Spread != 0.02 || l.MeasuredAt == "" {
		t.Errorf("%+v", l)
	}
}

// TestUnknownIsNotZero: a fact that was never looked for survives being
// written and read as unknown.
func TestUnknownIsNotZero(t *testing.T) {
	raw, err := json.Marshal(Profile{})
	if err != nil {
		t.Fatal(err)
	}
	var back Profile
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if _, ok := back.Memory.Holdable.Get(); ok || Ask(back.Storage.ODirect) != DontKnow {
		t.Error("unknown came back as a value")
	}
}

func TestSetFact(t *testing.T) {
	var p Profile
	if err := p.SetFact("storage.align", []byte("512")); err != nil || p.Storage.Align.Value != 512 {
		t.Errorf("%v, %+v", err, p.Storage.Align)
	}
	for name, value := range map[string]string{"storage.align": `"wide"`, "storage.nothing": "1"} {
		if err := p.SetFact(name, []byte(value)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s = %s: %v", name, value, err)
		}
	}
}

func TestPinsThatDoNotParse(t *testing.T) {
	for name, value := range map[string]string{"io-threads": "0", "no-such-knob": "1", "cache-policy": "fifo"} {
		if _, err := Make(Profile{}, config.Default(), Pins{name: value}, DefaultPolicy()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

func TestShellLine(t *testing.T) {
	got := ShellLine([]string{"--prompt", "it's 5 $", "--model", "m.gguf", ""})
	if want := `--prompt 'it'\''s 5 $' --model m.gguf ''`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
