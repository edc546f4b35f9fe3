package reports

import (
	"bytes"
	"image"
	"image/png"
	"path/filepath"
	"regexp"
	"testing"
)

var svgColour = regexp.MustCompile(`#([0-9A-Fa-f]{2})([0-9A-Fa-f]{2})([0-9A-Fa-f]{2})`)

// A plot says nothing by colour: it is legible in black and white, and PNG may
// keep one channel of three.
func TestPlotsAreGrey(t *testing.T) {
	n := 0
	for name, raw := range sampleFiles(t) {
		switch filepath.Ext(name) {
		case ".svg":
			for _, c := range svgColour.FindAllSubmatch(raw, -1) {
				if n++; !bytes.Equal(c[1], c[2]) || !bytes.Equal(c[2], c[3]) {
					t.Errorf("%s: colour %s", name, c[0])
				}
			}
		case ".png":
			img, err := png.Decode(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := img.(*image.Gray); !ok {
				t.Errorf("%s is a %T", name, img)
			}
		}
	}
	if n == 0 {
		t.Error("no colour was found at all: nothing was tested")
	}
}

// A canvas that was drawn on before leaves nothing in the next image.
func TestCanvasesAreCleanEachTime(t *testing.T) {
	want := sampleFiles(t)
	for range 2 {
		for name, raw := range files(t, testData()) {
			if filepath.Ext(name) == ".png" && !bytes.Equal(raw, want[name]) {
				t.Errorf("%s differs when it is drawn again", name)
			}
		}
	}
}
