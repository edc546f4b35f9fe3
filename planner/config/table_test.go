package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestTableIsUnambiguous: no two knobs share a spelling, each has a help text
// and a default that its own parser accepts.
func TestTableIsUnambiguous(t *testing.T) {
	seen := map[string]string{}
	claim := func(knob, spelling string) {
		if spelling == "" {
			return
		}
		if other, taken := seen[spelling]; taken {
			t.Errorf("%s and %s are both spelled %s", other, knob, spelling)
		}
		seen[spelling] = knob
	}
	def := Default()
	for _, p := range Table() {
		claim(p.Name, p.Flag())
		claim(p.Name, p.Env())
		for _, s := range []struct{ dash, text string }{{"-", p.Short}, {"-", p.Dash}, {"--", p.Alias}} {
			if s.text != "" {
				claim(p.Name, s.dash+s.text)
			}
		}
		if p.Kind == Bool || p.No != "" {
			claim(p.Name, "--"+p.OffFlag())
		}
		if p.Help == "" || p.Group == "" || strings.ToLower(p.Name) != p.Name {
			t.Errorf("%s lacks a help text or a group, or is not lower case", p.Name)
		}
		if p.Kind == List {
			continue
		}
		c := def
		if err := p.Set(&c, p.Get(&def)); err != nil {
			t.Errorf("%s does not accept its own default: %v", p.Name, err)
		}
		if diff := cmp.Diff(def, c); diff != "" {
			t.Errorf("%s set to its default changes something:\n%s", p.Name, diff)
		}
	}
}

func TestDefaultNeedsNoFlag(t *testing.T) {
	def := Default()
	if args := Args(&def); len(args) != 0 {
		t.Errorf("the default configuration is spelled %v", args)
	}
}

// TestBadValuesNameTheFlag: what is refused is refused with the flag's name
// and what it takes, and leaves the configuration as it was.
func TestBadValuesNameTheFlag(t *testing.T) {
	for name, bad := range map[string]string{
		"io-threads": "0", "cache-mb": "-5", "temp": "hot", "cache-policy": "fifo", "moe-stream": "maybe", "ubatch": "1e3",
		"prefill-slots": "3", "top-p": "NaN", "seed": "-1", "ctx-size": "99999999999999999999",
		"rpc": "127.0.0.1:50052,localhost:50052",
	} {
		p, ok := Lookup(name)
		if !ok {
			t.Fatalf("no knob %s", name)
		}
		c := Default()
		err := p.Set(&c, bad)
		if err == nil || !strings.Contains(err.Error(), "--"+name) || !strings.Contains(err.Error(), "want ") {
			t.Errorf("%s=%s: %v", name, bad, err)
		}
		if diff := cmp.Diff(Default(), c); diff != "" {
			t.Errorf("%s=%s changed the configuration:\n%s", name, bad, diff)
		}
	}
}

func TestServersAreAddressesNamedOnce(t *testing.T) {
	p, _ := Lookup("rpc")
	for text, ok := range map[string]bool{
		"": true, "box:50052": true, "a:1, b:2": true, "a:1,a:2": true, "[::1]:50052": true,
		"box": false, "box:": false, ":1": false, "box:port": false, "box:70000": false, "a:1,": false,
		"a:1,A:1": false, "localhost:1,127.0.0.1:1": false, "localhost:1,[::1]:1": false,
		"[fe80::1%eth0]:1": true, "[2001:db8::5]:1,[2001:db8::6]:1": true, "[::1]:1,[::1]:2": true,
		"::1:50052": false, "[::1]": false, "[::1:50052": false, "::1]:50052": false, "[box]:1": false, "[]:1": false, "[127.0.0.1]:1": false, "tcp://box:1": false,
	} {
		c := Default()
		if err := p.Set(&c, text); (err == nil) != ok {
			t.Errorf("--rpc %q: %v", text, err)
		}
	}
}

func TestAnIPv6AddressWithoutBracketsIsToldHowToSpellIt(t *testing.T) {
	p, _ := Lookup("rpc")
	c := Default()
	for _, text := range []string{"::1:50052", "fe80::1:2", "a:1,2001:db8::5:50052"} {
		if err := p.Set(&c, text); err == nil || !strings.Contains(err.Error(), "in brackets: [::1]:50052") {
			t.Errorf("--rpc %q: %v", text, err)
		}
	}
}

// TestSetGetRoundTrip: whatever Set accepts, Get spells so that Set accepts it
// again with the same result.
func TestSetGetRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := rapid.SampledFrom(Table()).Draw(rt, "knob")
		text := rapid.OneOf(rapid.SampledFrom(append([]string{"auto", "on", "off", "true", "0", "1", "-1", "0.5"}, p.Enum...)), rapid.String()).Draw(rt, "text")
		a := Default()
		if p.Kind == List || p.Set(&a, text) != nil {
			return
		}
		b := Default()
		if err := p.Set(&b, p.Get(&a)); err != nil {
			rt.Fatalf("%s: %q was accepted, its spelling %q is not: %v", p.Name, text, p.Get(&a), err)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func TestDiffNamesWhatDiffers(t *testing.T) {
	a, b := Default(), Default()
	b.IOThreads, b.Overlap = 8, false
	if diff := cmp.Diff([]string{"io-threads", "overlap"}, Diff(&a, &b)); diff != "" {
		t.Error(diff)
	}
}
