package synth

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// checkpoint is a llama2.c model: seven whole numbers, then 32-bit floats.
type checkpoint struct {
	dim, hidden, layers, heads, headsKV, vocab, context int
	tiedHead                                            bool

	embedding        []float32
	normAttn, normFF []float32
	wq, wk, wv, wo   []float32
	gate, down, up   []float32 // all layers: hidden x dim, dim x hidden, hidden x dim
	normOut, head    []float32
	tokens           []string
	scores           []float32
}

const maxCheckpoint = 8 << 30 // bytes; it is held in memory

// readCheckpoint reads weights and tokenizer as llama2.c writes them.
func readCheckpoint(weights, tokenizer string) (*checkpoint, error) {
	data, err := readLimited(weights)
	if err != nil {
		return nil, err
	}
	c := &checkpoint{}
	if err := c.parse(data); err != nil {
		return nil, fmt.Errorf("%s: %w", weights, err)
	}
	if data, err = readLimited(tokenizer); err != nil {
		return nil, err
	}
	if err := c.parseTokens(data); err != nil {
		return nil, fmt.Errorf("%s: %w", tokenizer, err)
	}
	return c, nil
}

func readLimited(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxCheckpoint {
		return nil, fmt.Errorf("%s: not a regular file of at most %d bytes", path, int64(maxCheckpoint))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxCheckpoint))
}

var errNotLlama2c = errors.New("not a llama2.c checkpoint")

func (c *checkpoint) parse(data []byte) error {
	if len(data) < 28 {
		return errNotLlama2c
	}
	var h [7]int
	for i := range h {
		h[i] = int(int32(le.Uint32(data[4*i:])))
	}
	c.dim, c.hidden, c.layers, c.heads, c.headsKV, c.vocab, c.context = h[0], h[1], h[2], h[3], h[4], h[5], h[6]
	// A negative vocabulary size says that the head is a matrix of its own.
	if c.tiedHead = c.vocab > 0; !c.tiedHead {
		c.vocab = -c.vocab
	}
	for _, n := range []int{c.dim, c.hidden, c.layers, c.heads, c.headsKV, c.vocab, c.context} {
		if n < 1 || n > 1<<20 {
			return fmt.Errorf("%w: its header says dim %d, hidden %d, layers %d, heads %d and %d, vocabulary %d, context %d",
				errNotLlama2c, c.dim, c.hidden, c.layers, c.heads, c.headsKV, c.vocab, c.context)
		}
	}
	if c.layers > maxLayers || c.dim%c.heads != 0 || c.heads%c.headsKV != 0 || c.dim/c.heads%2 != 0 {
		return fmt.Errorf("%w: %d layers of %d and %d heads over %d values", errNotLlama2c, c.layers, c.heads, c.headsKV, c.dim)
	}
	if want := c.size(); float64(len(data)) != want {
		return fmt.Errorf("%w: its header calls for %.0f bytes, it has %d", errNotLlama2c, want, len(data))
	}
	c.slice(data[28:])
	return nil
}

// size in bytes, as a float because hostile headers overflow integers.
func (c *checkpoint) size() float64 {
	d, h, l, v := float64(c.dim), float64(c.hidden), float64(c.layers), float64(c.vocab)
	kv := d / float64(c.heads) * float64(c.headsKV)
	n := v*d + l*(2*d+2*d*d+2*kv*d+3*h*d) + d + float64(c.context)*d/float64(c.heads)
	if !c.tiedHead {
		n += v * d
	}
	return 28 + 4*n
}

func (c *checkpoint) slice(data []byte) {
	take := func(n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = math.Float32frombits(le.Uint32(data[4*i:]))
		}
		data = data[4*n:]
		return out
	}
	d, l, kv := c.dim, c.layers, c.kv()
	c.embedding = take(c.vocab * d)
	c.normAttn = take(l * d)
	c.wq, c.wk, c.wv, c.wo = take(l*d*d), take(l*kv*d), take(l*kv*d), take(l*d*d)
	c.normFF = take(l * d)
	c.gate, c.down, c.up = take(l*c.hidden*d), take(l*c.hidden*d), take(l*c.hidden*d)
	c.normOut = take(d)
	take(c.context * c.headSize()) // rotation tables, which llama.cpp computes
	c.head = c.embedding
	if !c.tiedHead {
		c.head = take(c.vocab * d)
	}
}

func (c *checkpoint) headSize() int { return c.dim / c.heads }

func (c *checkpoint) kv() int { return c.headsKV * c.headSize() }

// parseTokens reads the tokenizer: the longest token's length, then for each
// token its score, its length and its bytes.
func (c *checkpoint) parseTokens(data []byte) error {
	at := 4
	for i := range c.vocab {
		if len(data) < at+8 {
			return fmt.Errorf("not the tokenizer of these weights: it holds %d tokens, they have %d", i, c.vocab)
		}
		score := math.Float32frombits(binary.LittleEndian.Uint32(data[at:]))
		n := int(binary.LittleEndian.Uint32(data[at+4:]))
		at += 8
		if n > len(data)-at {
			return fmt.Errorf("not a llama2.c tokenizer: token %d has length %d", i, n)
		}
		c.tokens = append(c.tokens, string(data[at:at+n]))
		c.scores = append(c.scores, score)
		at += n
	}
	if at != len(data) {
		return fmt.Errorf("not the tokenizer of these weights: %d bytes follow its %d tokens", len(data)-at, c.vocab)
	}
	return nil
}

// writeTokens adds the tokenizer to the metadata as llama.cpp knows it.
func (c *checkpoint) writeTokens(k *keys) {
	v := &vocab{}
	for i, t := range c.tokens {
		switch {
		case i < 3:
			kind := int32(tokenControl)
			if i == 0 {
				kind = tokenUnknown
			}
			v.add(controls[i], c.scores[i], kind)
		case i < 3+256:
			v.add(fmt.Sprintf("<0x%02X>", i-3), c.scores[i], tokenByte)
		default:
			v.add(strings.ReplaceAll(t, " ", space), c.scores[i], tokenNormal)
		}
	}
	v.writeLists(k)
	k.boolean("tokenizer.ggml.add_space_prefix", true)
}
