package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"github.com/bmoe/bmoe/engine"
)

// liveLine shows the text as it comes and, on a terminal, a line with the rate:
// in place of the text when that goes elsewhere, else on the row below it.
type liveLine struct {
	out, err io.Writer
	s        *engine.Session
	stop     context.CancelFunc // ends the turn
	lost     error              // why the text reaches nobody
	errTTY   bool
	below    bool // out and err are the same terminal: the line stands under the text
	width    int  // of that terminal
	column   int  // in which the text stands, before it is wrapped
	last     time.Time
	line     string // what it said last
	shown    bool
}

func newLiveLine(out, errw io.Writer, s *engine.Session) *liveLine {
	l := &liveLine{out: out, err: errw, s: s, errTTY: isTerminal(errw)}
	l.below = l.errTTY && isTerminal(out)
	if f, ok := errw.(*os.File); ok {
		l.width, _, _ = term.GetSize(int(f.Fd()))
	}
	return l
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// text prints a piece of text, on a terminal with the line below it anew.
func (l *liveLine) text(piece string) {
	line := ""
	if l.below {
		piece = forTerminal(piece)
		if l.shown {
			line = l.line
		}
		l.clear()
	}
	l.column += runewidth.StringWidth(piece)
	if at := strings.LastIndexByte(piece, '\n'); at >= 0 {
		l.column = runewidth.StringWidth(piece[at+1:])
	}
	if _, err := fmt.Fprint(l.out, piece); err != nil && l.lost == nil {
		l.lost = err
		l.stop()
	}
	if line != "" {
		l.show(line)
	}
}

// forTerminal keeps a model's text from moving the cursor: what is neither
// text, space nor line end is shown as not printable.
func forTerminal(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			if r == '\t' {
				return ' ' // of a width that can be counted
			}
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}

func (l *liveLine) clear() {
	if !l.shown {
		return
	}
	l.shown = false
	if l.below {
		fmt.Fprint(l.err, "\x1b[J") // from the text's end to the end of the screen
		return
	}
	fmt.Fprint(l.err, "\r\x1b[K")
}

// show writes the line. Below a text the cursor returns to where the text ends:
// a row is made there first, so that what is saved is where it will be.
func (l *liveLine) show(line string) {
	l.line = line
	if !l.below {
		l.shown = true
		fmt.Fprintf(l.err, "\r\x1b[K%s", line)
		return
	}
	l.shown = l.width <= 0 || l.column == 0 || l.column%l.width != 0
	if !l.shown {
		return // the row is full: going away and back would forget that the next character wraps
	}
	if l.width > 0 && len(line) >= l.width {
		line = line[:l.width-1]
	}
	fmt.Fprintf(l.err, "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[K%s\x1b8", line)
}

// due limits the line to a few updates a second.
func (l *liveLine) due() bool {
	if !l.errTTY || time.Since(l.last) < 200*time.Millisecond {
		return false
	}
	l.last = time.Now()
	return true
}

func (l *liveLine) prompt(done, total int) {
	if l.due() {
		l.show(fmt.Sprintf("prompt %d/%d tokens", done, total))
	}
}

func (l *liveLine) token(p engine.Progress) {
	if !l.due() {
		return
	}
	rate := float64(p.Token) / p.Elapsed.Seconds()
	left := time.Duration(float64(p.Of-p.Token) / rate * float64(time.Second)).Round(time.Second)
	l.show(fmt.Sprintf("%d/%d tokens, %.2f t/s%s, %s left", p.Token, p.Of, rate, l.streamed(p), left))
}

// streamed is the hit rate and the read rate, for a streamed model.
func (l *liveLine) streamed(p engine.Progress) string {
	c := l.s.Counters()
	h, ok := c.HitRate()
	if !ok {
		return ""
	}
	return fmt.Sprintf(", %.0f %% hits, %.0f MB/s", 100*h, float64(c.DecodeBytesRead)/1e6/p.Elapsed.Seconds())
}

func (l *liveLine) end(newline bool) {
	l.clear()
	if newline {
		fmt.Fprintln(l.out)
	}
}
