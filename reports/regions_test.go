package reports

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testRegions(t *testing.T) Regions {
	t.Helper()
	d := testData()
	doc, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Regions(doc, "results/")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRewriteFillsRegions(t *testing.T) {
	r := Regions{"findings": "a table\n", "value:runs": "36"}
	const before = "x\n<!-- bmoe:begin findings -->\nold\nold\n<!-- bmoe:end findings -->\nof <!-- bmoe:begin value:runs -->0<!-- bmoe:end value:runs --> runs\n"
	const want = "x\n<!-- bmoe:begin findings -->\na table\n<!-- bmoe:end findings -->\nof <!-- bmoe:begin value:runs -->36<!-- bmoe:end value:runs --> runs\n"
	got, err := r.Rewrite([]byte(before))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := r.Rewrite(got)
	if err != nil || string(again) != want {
		t.Errorf("rewriting again: %v\n%s", err, again)
	}
}

func TestRewriteRefuses(t *testing.T) {
	r := Regions{"findings": "a table\n", "value:runs": "36"}
	for _, c := range []struct{ text, want string }{
		{"\n<!-- bmoe:begin nosuch -->\n<!-- bmoe:end nosuch -->", `line 2: region "nosuch" is none of: findings, value:runs`},
		{"<!-- bmoe:begin findings -->\n", "line 1: region findings has no <!-- bmoe:end findings -->"},
		{"<!-- bmoe:begin findings -->\n<!-- bmoe:begin value:runs -->\n<!-- bmoe:end findings -->", "line 1: region findings has no"},
		{"<!-- bmoe:begin findings\n-->", "line 1: the opening of a region is not closed"},
		{"a\nb <!-- bmoe:end findings -->", "line 2: a region ends that did not begin"},
		{"<!-- bmoe:begin findings --><!-- bmoe:end findings -->", "holds lines"},
	} {
		if _, err := r.Rewrite([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one with %q", c.text, err, c.want)
		}
	}
}

func TestRegionsOfReport(t *testing.T) {
	r := testRegions(t)
	for name, want := range map[string]string{
		"value:runs":         "36",
		"value:machines":     "1",
		"value:io-threads:4": "better: 4 decodes 12.3 % faster than 1 (96.1 % CI 9.8 to 14.9 %, 8 pairs)",
		"value:dates":        "2026-03-01 to 2026-03-02",
	} {
		if r[name] != want {
			t.Errorf("%s is %q, want %q", name, r[name], want)
		}
	}
	if !strings.Contains(r["verdicts"], "| io-threads | synth_1 | 4 ") || !strings.Contains(r["verdicts"], "; n = 36 runs in all") {
		t.Errorf("region verdicts:\n%s", r["verdicts"])
	}
	if !strings.Contains(r["predictions"], "(results/predicted-decode.svg)") {
		t.Errorf("the figure of region predictions is not under results/:\n%s", r["predictions"])
	}
}

func TestDifferenceNamesItsPlace(t *testing.T) {
	old := "x\n<!-- bmoe:begin findings -->\n1\n<!-- bmoe:end findings -->\nrest\n"
	got := Difference([]byte(old), []byte(strings.Replace(old, "1", "2", 1)))
	if want := "line 3, region findings:\n-1\n+2\n"; got != want {
		t.Errorf("difference %q, want %q", got, want)
	}
	const two = "<!-- bmoe:begin value:runs -->1<!-- bmoe:end value:runs --> in <!-- bmoe:begin value:experiments -->9<!-- bmoe:end value:experiments -->"
	if got := Difference([]byte(two), []byte(strings.Replace(two, "9", "8", 1))); !strings.HasPrefix(got, "line 1, region value:experiments:") {
		t.Errorf("of two regions on a line: %q", got)
	}
	if got := Difference([]byte(old), []byte(old)); got != "" {
		t.Errorf("difference of a text from itself: %q", got)
	}
	if got := Difference([]byte("a"), []byte("a\nb")); !strings.HasPrefix(got, "line 2:\n+b") {
		t.Errorf("difference %q", got)
	}
}
