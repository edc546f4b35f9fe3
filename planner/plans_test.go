package planner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/planner/config"
)

var update = flag.Bool("update", false, "rewrite the expected plans in testdata")

// The files in testdata/plans are machines nobody here owns: facts and pins
// above the line of dashes, the plan they must give below it.
//
//	include NAME       facts shared by several files, from testdata/facts
//	fact NAME VALUE    sizes, rates and times with their units, yes, no, or JSON
//	spread NAME VALUE  the spread of a fact given before
//	forget NAME        makes a fact of an included file unknown again
//	device NAME        a device; its facts are device.NAME.*
//	pin KNOB VALUE     as if typed by hand
type planCase struct {
	profile Profile
	pins    Pins
	want    string
}

func TestPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/plans/*.txt")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d plan files (%v), want at least 60", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			c := readCase(t, file)
			got := planText(t, c)
			if *update {
				rewrite(t, file, got)
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("plan differs (-want +got), -update rewrites it:\n%s", diff)
			}
		})
	}
}

func planText(t *testing.T, c planCase) string {
	t.Helper()
	plan := planOf(t, c)
	var out bytes.Buffer
	if err := WriteText(&out, &plan, true); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, l := range strings.Split(out.String(), "\n") {
		lines = append(lines, strings.TrimRight(l, " "))
	}
	return strings.Join(lines, "\n")
}

func planOf(t *testing.T, c planCase) Plan {
	t.Helper()
	base := config.Default()
	plan, err := Make(c.profile, base, c.pins, DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func loadPlan(t *testing.T, name string) Plan {
	t.Helper()
	return planOf(t, readCase(t, filepath.Join("testdata/plans", name+".txt")))
}

func readCase(t *testing.T, file string) planCase {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, want, _ := strings.Cut(string(raw), "\n----\n")
	c := planCase{pins: Pins{}, want: want}
	if err := c.read(head); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

func rewrite(t *testing.T, file, got string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(raw), "\n----\n")
	if err := os.WriteFile(file, []byte(strings.TrimRight(head, "\n")+"\n----\n"+got), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (c *planCase) read(text string) error {
	sc := bufio.NewScanner(strings.NewReader(text))
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := c.line(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return sc.Err()
}

func (c *planCase) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	name, value, _ := strings.Cut(strings.TrimSpace(rest), " ")
	value = strings.TrimSpace(value)
	switch word {
	case "include":
		raw, err := os.ReadFile(filepath.Join("testdata/facts", name+".txt"))
		if err != nil {
			return err
		}
		return c.read(string(raw))
	case "device":
		c.profile.Devices = append(c.profile.Devices, Device{Name: name})
		return nil
	case "pin":
		c.pins[name] = value
		return nil
	case "fact":
		return c.profile.SetFact(name, factJSON(value))
	case "spread", "forget", "why":
		return c.amend(word, name, value)
	}
	return fmt.Errorf("%q is not a line of a plan file", line)
}

func (c *planCase) amend(word, name, value string) error {
	for _, e := range c.profile.entries() {
		if e.name != name {
			continue
		}
		return e.fact.(interface {
			amend(word, value string) error
		}).amend(word, value)
	}
	return fmt.Errorf("there is no fact %s", name)
}

func (f *Fact[T]) amend(word, value string) (err error) {
	switch word {
	case "forget":
		*f = Fact[T]{}
	case "why":
		f.Reason = value
	default:
		f.Spread, err = strconv.ParseFloat(value, 64)
	}
	return err
}

// factUnits are the suffixes a plan file may write numbers with.
var factUnits = []struct {
	suffix string
	factor float64
}{
	{"GiB/s", 1 << 30},
	{"MiB/s", 1 << 20},
	{"GB/s", 1e9},
	{"MB/s", 1e6},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"GB", 1e9},
	{"MB", 1e6},
	{"ms", 1e-3},
	{"us", 1e-6},
	{"ns", 1e-9},
}

func factJSON(value string) []byte {
	switch value {
	case "yes":
		return []byte("true")
	case "no":
		return []byte("false")
	}
	for _, u := range factUnits {
		num, ok := strings.CutSuffix(value, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil {
			break
		}
		if u.factor > 1 && v*u.factor < 1<<62 && !strings.HasSuffix(u.suffix, "/s") {
			return []byte(strconv.FormatInt(int64(v*u.factor), 10))
		}
		return []byte(strconv.FormatFloat(v*u.factor, 'g', -1, 64))
	}
	if json.Valid([]byte(value)) {
		return []byte(value)
	}
	quoted, _ := json.Marshal(value)
	return quoted
}
