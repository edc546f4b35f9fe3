package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

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
		more, err := await(ctx, func() (bool, error) { return in.Scan(), nil })
		if err != nil {
			return err
		}
		if !more {
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
	ctx, t.live.stop = context.WithCancel(ctx)
	defer t.live.stop()
	res, err := t.s.Generate(ctx, req)
	if res != nil {
		doc.turn(res)
	}
	t.live.end(!t.r.flags.asJSON)
	if t.live.lost != nil {
		err = withHint(fmt.Errorf("standard output: %w", t.live.lost), "the run ended there; what it measured is stored unless --no-record was given")
	}
	return err
}
