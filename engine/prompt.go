package engine

import (
	"errors"
	"fmt"

	"github.com/bmoe/bmoe/engine/internal/llama"
)

// promptTokens tokenises a turn's text and returns what is to be computed, and
// how many tokens of it the context already holds.
func (s *Session) promptTokens(req *Request) (tokens []int32, reused int, err error) {
	text := req.Text
	if req.Chat {
		if text, err = s.model.ApplyChat([]llama.Message{{Role: "user", Content: text}}); err != nil {
			return nil, 0, err
		}
	}
	first := req.Whole || len(s.past) == 0
	if tokens, err = s.model.Tokenize(text, first, first || req.Chat); err != nil {
		return nil, 0, err
	}
	if len(tokens) == 0 {
		return nil, 0, errors.New("the prompt is empty: give one with -p or -f")
	}
	if req.Whole {
		reused = s.keepPrefix(tokens)
		tokens = tokens[reused:]
	} else {
		// The last token of the turn before was given out but not computed.
		tokens = append(append([]int32(nil), s.pending...), tokens...)
	}
	if room := s.ctx.Size() - len(s.past); len(tokens) >= room {
		return nil, 0, fmt.Errorf("the prompt has %d tokens, the context has room for %d: raise -c", len(tokens), room)
	}
	return tokens, reused, nil
}

// keepPrefix cuts the context to what it has in common with tokens and returns
// how long that is. The last token is always computed: its logits are wanted.
func (s *Session) keepPrefix(tokens []int32) int {
	n := 0
	for n < len(s.past) && n < len(tokens)-1 && s.past[n] == tokens[n] {
		n++
	}
	if n < len(s.past) && !s.ctx.Truncate(n) {
		s.ctx.Clear() // a memory that cannot forget a tail starts over
		n = 0
	}
	s.past, s.pending = s.past[:n], nil
	return n
}
