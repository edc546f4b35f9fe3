package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bmoe/bmoe/engine"
)

// screen is as much of a terminal as the live line needs: rows that wrap only
// when the character after the last column comes, and scrolling.
type screen struct {
	width, height     int
	rows              [][]rune
	y, x              int
	savedY, savedX    int
	scrolled          []string
	full, savedIsFull bool // a character stands in the last column and nothing came after it
}

func newScreen(width, height int) *screen {
	s := &screen{width: width, height: height, rows: make([][]rune, height)}
	for i := range s.rows {
		s.rows[i] = blank(width)
	}
	return s
}

func blank(n int) []rune { return []rune(strings.Repeat(" ", n)) }

func (s *screen) down() {
	if s.y++; s.y == s.height {
		s.scrolled = append(s.scrolled, string(s.rows[0]))
		s.rows = append(s.rows[1:], blank(s.width))
		s.y--
	}
}

func (s *screen) put(r rune) {
	if s.full {
		s.down()
		s.x, s.full = 0, false
	}
	s.rows[s.y][s.x] = r
	if s.full = s.x == s.width-1; !s.full {
		s.x++
	}
}

func (s *screen) erase(all bool) {
	copy(s.rows[s.y][s.x:], blank(s.width))
	for y := s.y + 1; all && y < s.height; y++ {
		s.rows[y] = blank(s.width)
	}
}

func (s *screen) Write(p []byte) (int, error) {
	text := string(p)
	for text != "" {
		text = s.step(text)
	}
	return len(p), nil
}

func (s *screen) step(text string) (rest string) {
	for seq, do := range map[string]func(){
		"\x1bD":  func() { s.down(); s.full = false },
		"\x1b[A": func() { s.y, s.full = max(s.y-1, 0), false },
		"\x1b[B": func() { s.y, s.full = min(s.y+1, s.height-1), false },
		"\x1b7":  func() { s.savedY, s.savedX, s.savedIsFull = s.y, s.x, s.full },
		"\x1b8":  func() { s.y, s.x, s.full = s.savedY, s.savedX, s.savedIsFull },
		"\x1b[J": func() { s.erase(true) },
		"\x1b[K": func() { s.erase(false) },
		"\r":     func() { s.x, s.full = 0, false },
		"\n":     func() { s.down(); s.x, s.full = 0, false }, // as a terminal's driver turns it into both
	} {
		if after, ok := strings.CutPrefix(text, seq); ok {
			do()
			return after
		}
	}
	r := []rune(text)
	s.put(r[0])
	return string(r[1:])
}

func (s *screen) lines() []string {
	all := append([]string{}, s.scrolled...)
	for _, row := range s.rows {
		all = append(all, string(row))
	}
	return all
}

// The line stands below the text while it comes, and leaves every character of
// the text where it belongs: at row ends, at the bottom of the screen, with
// bytes that are no text.
func TestLiveLineLeavesTheTextWhole(t *testing.T) {
	s := newScreen(20, 6)
	l := &liveLine{out: s, err: s, s: &engine.Session{}, errTTY: true, below: true, width: 20, stop: func() {}}
	seen := 0
	var want strings.Builder
	for i := range 120 {
		piece := fmt.Sprintf("w%d ", i)
		switch {
		case i%17 == 3:
			piece += "\n"
		case i%13 == 5:
			piece = "é\xae\x1b[2J"
		}
		want.WriteString(forTerminal(piece))
		l.text(piece)
		l.last = time.Time{}
		l.token(engine.Progress{Token: i + 1, Of: 120, Elapsed: time.Duration(i+1) * time.Second})
		if s.y+1 < s.height && strings.HasPrefix(string(s.rows[s.y+1]), fmt.Sprintf("%d/120 tokens", i+1)) {
			seen++
		}
	}
	l.end(true)
	plain := newScreen(20, 6)
	fmt.Fprintln(plain, want.String())
	if got, want := strings.Join(s.lines(), "|"), strings.Join(plain.lines(), "|"); got != want {
		t.Errorf("the screen holds\n%s\nthe text alone is\n%s", strings.ReplaceAll(got, "|", "\n"), strings.ReplaceAll(want, "|", "\n"))
	}
	if seen < 100 {
		t.Errorf("the line stood below the text after %d of 120 tokens", seen)
	}
}

// Where nobody reads the text the turn ends, and the reason is kept.
func TestTextThatReachesNobodyEndsTheTurn(t *testing.T) {
	stopped := false
	l := &liveLine{out: brokenPipe{}, err: &bytes.Buffer{}, stop: func() { stopped = true }}
	l.text("once")
	if !stopped || l.lost == nil {
		t.Errorf("stopped %v, lost %v", stopped, l.lost)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, fmt.Errorf("broken pipe") }
