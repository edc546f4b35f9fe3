package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/bmoe/bmoe/engine/internal/llama"
	"github.com/bmoe/bmoe/engine/internal/rpcdev"
)

// Request is one turn.
type Request struct {
	Text string // the user's text
	Chat bool   // wrap it in the model's chat template
	// Whole says that Text is the conversation from its beginning: what the
	// context already holds of it is kept and not computed again.
	Whole   bool
	Predict int // tokens to generate at most
	// OnText is called with each piece of text as it is complete.
	OnText func(piece string)
	// OnToken is called after each decoded token.
	OnToken func(Progress)
	// OnPrompt is called as the prompt is computed.
	OnPrompt func(done, total int)
}

// Progress is where a generation stands.
type Progress struct {
	Token   int           // decoded so far
	Of      int           // asked for
	Elapsed time.Duration // of decoding
}

// Result is what a turn produced.
type Result struct {
	Text         string
	Tokens       []int32 // generated
	PromptTokens int     // computed
	ReusedTokens int     // of the prompt, found in the context
	PrefillS     float64 // prompt, in seconds
	TTFT         float64 // from the call to the first token, in seconds
	TokenNS      []int64 // each decoded token after the first, in nanoseconds
	// Of each decoded token's time, the part spent waiting for reads and the
	// part spent managing the cache, in nanoseconds; nil for a resident model.
	TokenWaitNS   []int64
	TokenManageNS []int64
	LogitsHash    string // with LogitsHash: FNV-1a of every logit's bits
	StopReason    string // length, eog, stop, context
}

// decodeStats are the session's totals.
type decodeStats struct {
	wide           int64 // graphs the prompts were computed in
	tokens, prompt int64
	decodeS        float64
	graphS         float64 // of all graphs, prompts included
}

// generation is one Generate under way.
type generation struct {
	s       *Session
	req     *Request
	res     *Result
	sampler *llama.Sampler
	hash    *logitsHash
	random  *rand.Rand
	out     *pieces
	began   time.Time
}

// Generate computes a prompt and decodes tokens after it. When ctx ends it
// returns what there is with ctx's error.
func (s *Session) Generate(ctx context.Context, req Request) (*Result, error) {
	// A thread of its own: between two calls into llama.cpp Go would move the
	// goroutine to another one, which begins beside a busy thread of the pool.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := &generation{s: s, req: &req, res: &Result{}, began: time.Now(), out: newPieces(s.cfg.Stop, req.OnText)}
	tokens, reused, err := s.promptTokens(&req)
	if err != nil {
		return nil, err
	}
	g.res.PromptTokens, g.res.ReusedTokens = len(tokens), reused
	if s.hook != nil {
		s.hook.Abort(false)
		s.stream.Reset()
		s.hostTurn = false
	}
	rpcdev.Hurry(false)
	defer s.abortWith(ctx)()
	c := &s.cfg
	g.sampler = llama.NewSampler(c.Temp, c.TopK, c.TopP, c.Seed)
	defer g.sampler.Close()
	if c.LogitsHash {
		g.hash = newLogitsHash()
	}
	if c.RandomTokens >= 0 {
		g.random = rand.New(rand.NewPCG(uint64(c.RandomTokens), 0))
	}
	err = g.run(ctx, tokens)
	g.out.flush()
	g.res.Text = g.out.text()
	if g.hash != nil {
		g.res.LogitsHash = g.hash.hex()
	}
	s.turn++
	if s.stream != nil && err == nil {
		s.stream.Rebalance()
	}
	return g.res, err
}

func (g *generation) run(ctx context.Context, tokens []int32) error {
	if err := g.prefill(ctx, tokens); err != nil {
		return err
	}
	began := time.Now()
	for n := 0; n < g.req.Predict; n++ {
		next := g.next()
		if n == 0 {
			g.res.TTFT = time.Since(g.began).Seconds()
		}
		g.res.Tokens = append(g.res.Tokens, next)
		g.s.pending = []int32{next}
		if g.random == nil && !g.s.cfg.IgnoreEOS && g.s.model.IsEOG(next) {
			g.res.StopReason = "eog"
			return nil
		}
		if g.out.add(g.s.model.Piece(next)) {
			g.res.StopReason = "stop"
			return nil
		}
		if n+1 == g.req.Predict {
			break
		}
		if len(g.s.past)+1 > g.s.ctx.Size() {
			g.res.StopReason = "context"
			return nil
		}
		if err := g.step(ctx, next); err != nil {
			return err
		}
		if g.req.OnToken != nil {
			g.req.OnToken(Progress{n + 1, g.req.Predict, time.Since(began)})
		}
	}
	g.res.StopReason = "length"
	return nil
}

// abortWith ends the running graph when ctx ends. The function it returns ends
// the watch: an end of ctx that is noticed late must not stop the next turn.
func (s *Session) abortWith(ctx context.Context) (done func()) {
	var mu sync.Mutex
	over := false
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			s.Cancel()
			rpcdev.Hurry(true)
		}
	})
	return func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}

// next picks the token to decode: sampled, or drawn blindly for benchmarks.
func (g *generation) next() int32 {
	if g.hash != nil {
		g.hash.add(g.s.ctx.Logits())
	}
	if g.random != nil {
		return int32(g.random.IntN(g.s.model.VocabSize()))
	}
	return g.sampler.Sample(g.s.ctx)
}

// prefill computes the prompt in graphs of at most the ubatch's width.
func (g *generation) prefill(ctx context.Context, tokens []int32) error {
	began := time.Now()
	if g.req.OnPrompt != nil && len(tokens) > 0 {
		g.req.OnPrompt(0, len(tokens)) // a first pass may take a minute
	}
	for done := 0; done < len(tokens); {
		n := min(g.s.ubatch, len(tokens)-done)
		if err := g.s.compute(ctx, tokens[done:done+n], true); err != nil {
			return err
		}
		done += n
		g.s.decode.wide++
		if g.req.OnPrompt != nil {
			g.req.OnPrompt(done, len(tokens))
		}
	}
	g.res.PrefillS = time.Since(began).Seconds()
	g.s.decode.prompt += int64(len(tokens))
	return nil
}

// step decodes one token.
func (g *generation) step(ctx context.Context, tok int32) error {
	began := time.Now()
	wait, manage := g.s.split()
	if err := g.s.compute(ctx, []int32{tok}, false); err != nil {
		return err
	}
	d := time.Since(began)
	if g.s.stream != nil {
		w, m := g.s.split()
		g.res.TokenWaitNS = append(g.res.TokenWaitNS, int64(1e9*(w-wait)))
		g.res.TokenManageNS = append(g.res.TokenManageNS, int64(1e9*(m-manage)))
	}
	g.res.TokenNS = append(g.res.TokenNS, d.Nanoseconds())
	g.s.decode.tokens++
	g.s.decode.decodeS += d.Seconds()
	return nil
}

// split is the time spent so far waiting for reads and managing the cache.
func (s *Session) split() (waitS, manageS float64) {
	if s.stream == nil {
		return 0, 0
	}
	return s.stream.Spent()
}

// compute runs one graph and says why it failed.
func (s *Session) compute(ctx context.Context, tokens []int32, prompt bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	device := false
	if s.stream != nil {
		var err error
		if device, err = s.beginStream(len(tokens), prompt); err != nil {
			return err
		}
	}
	began := time.Now()
	err := s.ctx.Decode(tokens)
	if s.stream != nil {
		s.hook.Settle()
	}
	s.decode.graphS += time.Since(began).Seconds()
	if device && err == nil {
		err = s.device.lost()
	}
	if lost := s.placed.lost(); lost != nil {
		return lost
	}
	if err == nil {
		s.past = append(s.past, tokens...)
		s.pending = nil
		return nil
	}
	// What the failed graph left in the context is not to be built on.
	s.ctx.Truncate(len(s.past))
	if device && ctx.Err() == nil && s.stream.Err() == nil {
		retry, err := s.deviceFailed(err)
		if retry {
			return s.compute(ctx, tokens, prompt)
		}
		return err
	}
	if s.stream != nil && s.stream.Err() != nil {
		return s.stream.Err()
	}
	if ctxErr := ctx.Err(); errors.Is(err, llama.ErrAborted) && ctxErr != nil {
		return ctxErr
	}
	return err
}

// beginStream readies the stream for a graph and reports whether a device
// computes it.
func (s *Session) beginStream(tokens int, prompt bool) (device bool, err error) {
	if err := s.files.Unchanged(); err != nil {
		return false, err
	}
	if device, err = s.takesGraph(tokens); err != nil {
		return false, err
	}
	s.stream.OnDevice(device)
	remap, err := s.stream.Begin(tokens, prompt)
	if err != nil {
		return false, err
	}
	s.hook.Mode(remap, s.cfg.Overlap, device || s.placed != nil)
	s.tap.begin(s.turn, prompt, len(s.past))
	s.log.begin(s.turn, prompt, len(s.past))
	return device, nil
}

// Clear starts a new conversation. The expert cache stays warm.
func (s *Session) Clear() {
	s.ctx.Clear()
	s.past, s.pending = s.past[:0], nil
}
