package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/bmoe/bmoe/engine"
)

// talk holds a conversation: one turn, or with -i as many as are typed.
type talk struct {
	r    *runner
	s    *engine.Session
	live *liveLine
}

func newTalk(r *runner, s *engine.Session) *talk {
	return &talk{r: r, s: s, live: newLiveLine(r.app.stdout, r.app.stderr, s)}
}

func (t *talk) turns(ctx context.Context, doc *document) error {
	if t.r.prompt != "" {
		if err := t.turn(ctx, doc, t.r.prompt); err != nil {
			return err
		}
	}
	if !t.r.flags.interactive {
		return nil
	}
	in := bufio.NewScanner(t.r.app.stdin)
	in.Buffer(nil, 1<<20)
	for {
		fmt.Fprint(t.r.app.stderr, "> ")
		if !in.Scan() {
			return in.Err()
		}
		if strings.TrimSpace(in.Text()) == "" {
			continue
		}
		if err := t.turn(ctx, doc, in.Text()); err != nil {
			return err
		}
	}
}

func (t *talk) turn(ctx context.Context, doc *document, text string) error {
	req := engine.Request{Text: text, Chat: t.r.cfg.Chat, Predict: t.r.cfg.Predict, OnPrompt: t.live.prompt, OnToken: t.live.token}
	if !t.r.flags.asJSON {
		req.OnText = t.live.text
	}
	res, err := t.s.Generate(ctx, req)
	if res != nil {
		doc.turn(res)
	}
	t.live.end(!t.r.flags.asJSON)
	return err
}

// liveLine shows the text as it comes and, on a terminal, a line with the rate
// below it when nothing else is being printed.
type liveLine struct {
	out, err io.Writer
	s        *engine.Session
	errTTY   bool
	shared   bool // out and err are the same terminal
	last     time.Time
	shown    bool
}

func newLiveLine(out, errw io.Writer, s *engine.Session) *liveLine {
	l := &liveLine{out: out, err: errw, s: s}
	l.errTTY = isTerminal(errw)
	l.shared = l.errTTY && isTerminal(out)
	return l
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

func (l *liveLine) text(piece string) {
	l.clear()
	fmt.Fprint(l.out, piece)
}

func (l *liveLine) clear() {
	if l.shown {
		fmt.Fprint(l.err, "\r\x1b[K")
		l.shown = false
	}
}

// due limits the line to a few updates a second. Where the text itself runs
// over the same terminal, the text is the progress.
func (l *liveLine) due() bool {
	if !l.errTTY || time.Since(l.last) < 200*time.Millisecond {
		return false
	}
	l.last = time.Now()
	return true
}

func (l *liveLine) prompt(done, total int) {
	if l.due() {
		fmt.Fprintf(l.err, "\r\x1b[Kprompt %d/%d tokens", done, total)
		l.shown = true
	}
}

func (l *liveLine) token(p engine.Progress) {
	if l.shared || !l.due() {
		return
	}
	rate := float64(p.Token) / p.Elapsed.Seconds()
	left := time.Duration(float64(p.Of-p.Token) / rate * float64(time.Second)).Round(time.Second)
	fmt.Fprintf(l.err, "\r\x1b[K%d/%d tokens, %.2f t/s%s, %s left", p.Token, p.Of, rate, l.streamed(p), left)
	l.shown = true
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
