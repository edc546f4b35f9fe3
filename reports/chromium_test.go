//go:build chromium

package reports

import (
	"bytes"
	"flag"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// screenshots is where the test leaves its screenshots.
var screenshots = flag.String("screenshots", "", "folder for the browser test's screenshots")

// TestHTMLInChromium opens the page in headless Chromium, light and dark: no
// console message, no request to anywhere, every image drawn, and a click on a
// column's name sorts the table. Run it with -tags chromium where Chromium is
// installed; with -screenshots DIR it leaves its screenshots there.
func TestHTMLInChromium(t *testing.T) {
	dir := t.TempDir()
	page := sampleFiles(t)["report.html"]
	// What the page is made to do is written into its title at the end.
	const probe = `<script>window.addEventListener("load", () => {
  const th = [...document.querySelectorAll("#runs th")].find(h => h.textContent === "t/s");
  const cells = () => [...th.closest("table").tBodies[0].rows].map(r => parseFloat(r.cells[th.cellIndex].textContent));
  th.querySelector("button").click(); const up = cells();
  th.querySelector("button").click(); const down = cells();
  const rising = a => a.every((x, i) => i === 0 || a[i - 1] <= x);
  const images = [...document.images].every(i => i.complete && i.naturalWidth > 0);
  const requests = performance.getEntriesByType("resource").filter(e => !e.name.startsWith("data:")).length;
  document.title = JSON.stringify({ up: rising(up), down: rising(down.reverse()), rows: up.length, images, requests });
});</script></body>`
	probed := filepath.Join(dir, "probed.html")
	if err := os.WriteFile(probed, bytes.Replace(page, []byte("</body>"), []byte(probe), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	dom, log := chromium(t, dir, "--dump-dom", "file://"+probed)
	if !strings.Contains(dom, `{"up":true,"down":true,"rows":30,"images":true,"requests":0}`) {
		title, _, _ := strings.Cut(dom, "</title>")
		t.Errorf("the page reports %s", title[max(0, len(title)-200):])
	}
	if strings.Contains(log, "CONSOLE") {
		t.Errorf("the console says:\n%s", log)
	}
	// The documents' page is of real runs; that is what the screenshots show.
	plain, err := filepath.Abs(filepath.Join("..", "docs", "results", "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(plain); err != nil {
		t.Fatalf("%v (make docs writes it)", err)
	}
	for name, flags := range map[string][]string{"light": nil, "dark": {"--force-dark-mode", "--blink-settings=preferredColorScheme=0"}} {
		shot := filepath.Join(dir, name+".png")
		chromium(t, dir, append(flags, "--screenshot="+shot, "--window-size=1250,1400", "file://"+plain)...)
		raw, err := os.ReadFile(shot)
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		r, _, _, _ := img.At(3, 3).RGBA() // the paper
		if dark := r < 0x8000; dark != (name == "dark") {
			t.Errorf("%s: the paper's red is %#x", name, r)
		}
		if *screenshots != "" {
			if err := os.WriteFile(filepath.Join(*screenshots, "report-"+name+".png"), raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func chromium(t *testing.T, dir string, args ...string) (stdout, stderr string) {
	t.Helper()
	all := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--enable-logging=stderr", "--log-level=0",
		"--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + filepath.Join(dir, "profile"),
	}, args...)
	cmd := exec.Command("chromium", all...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, errs.String())
	}
	return out.String(), errs.String()
}
