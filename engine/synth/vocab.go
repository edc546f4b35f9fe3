package synth

import "strings"

// The vocabulary is of the SentencePiece kind: control tokens, a token for
// each byte so that any text can be written, the printable characters, some
// words, and syllables to fill up to any size.

// space is how SentencePiece writes a space.
const space = "\u2581"

// Kinds of token.
const (
	tokenNormal  = 1
	tokenUnknown = 2
	tokenControl = 3
	tokenByte    = 6
)

var controls = []string{"<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"}

const (
	firstByte = 5
	firstWord = firstByte + 256
	minVocab  = firstWord + 96 // every printable character and the space
)

const commonWords = `the of and to in is it you that he was for on are with as his they be at one have this
from or had by hot but some what there we can out other were all your when up use word how said an each she which do
their time if will way about many then them would write like so these her long make thing see him two has look more
day could go come did my sound no most number who over know water than call first people may down side been now find
any new work part take get place made live where after back little only round man year came show every good me give
our under name very through just form much great think say help low line before turn cause same mean differ move
right boy old too does tell sentence set three want air well also play small end put home read hand port large spell
add even land here must big high such follow act why ask men change went light kind off need house picture try us
again animal point mother world near build self earth father`

// chatTemplate is the widespread one with im_start and im_end.
const chatTemplate = `{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

type vocab struct {
	tokens []string
	scores []float32
	kinds  []int32
}

func (v *vocab) add(token string, score float32, kind int32) {
	v.tokens = append(v.tokens, token)
	v.scores = append(v.scores, score)
	v.kinds = append(v.kinds, kind)
}

// makeVocab is a vocabulary of size tokens.
func makeVocab(size int) *vocab {
	v := &vocab{}
	for i, c := range controls {
		kind := int32(tokenControl)
		if i == 0 {
			kind = tokenUnknown
		}
		v.add(c, 0, kind)
	}
	const hex = "0123456789ABCDEF"
	for b := range 256 {
		v.add("<0x"+hex[b>>4:b>>4+1]+hex[b&15:b&15+1]+">", 0, tokenByte)
	}
	seen := map[string]bool{}
	piece := func(p string) {
		if len(v.tokens) < size && !seen[p] {
			seen[p] = true
			// Pieces merge in order of score: earlier pieces are the likelier ones.
			v.add(p, -float32(len(v.tokens)-firstWord), tokenNormal)
		}
	}
	piece(space)
	for c := '!'; c <= '~'; c++ {
		piece(string(c))
	}
	piece("\n")
	for _, w := range strings.Fields(commonWords) {
		prefixes(space+w, piece)
	}
	syllables(piece, func() bool { return len(v.tokens) < size })
	return v
}

// prefixes adds a word after all of its prefixes, from which it is merged.
func prefixes(word string, piece func(string)) {
	runes := []rune(word)
	for n := 2; n <= len(runes); n++ {
		piece(string(runes[:n]))
	}
}

// syllables adds ever longer words of consonants and vowels until full.
func syllables(piece func(string), more func() bool) {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	words := []string{""}
	for more() {
		var longer []string
		for _, w := range words {
			for _, c := range consonants {
				for _, a := range vowels {
					s := w + string(c) + string(a)
					prefixes(space+s, piece)
					prefixes(s, piece)
					longer = append(longer, s)
					if !more() {
						return
					}
				}
			}
		}
		words = longer
	}
}

// writeLists adds the tokens and the control tokens' numbers to the metadata.
func (v *vocab) writeLists(k *keys) {
	k.text("tokenizer.ggml.model", "llama")
	k.texts("tokenizer.ggml.tokens", v.tokens)
	k.f32s("tokenizer.ggml.scores", v.scores)
	k.i32s("tokenizer.ggml.token_type", v.kinds)
	k.u32("tokenizer.ggml.unknown_token_id", 0)
	k.u32("tokenizer.ggml.bos_token_id", 1)
	k.u32("tokenizer.ggml.eos_token_id", 2)
	k.boolean("tokenizer.ggml.add_bos_token", true)
	k.boolean("tokenizer.ggml.add_eos_token", false)
}

// write adds the whole tokenizer to the metadata.
func (v *vocab) write(k *keys) {
	v.writeLists(k)
	k.u32("tokenizer.ggml.eot_token_id", 4)
	// No space of its own at the start, so that text comes back as it went in.
	k.boolean("tokenizer.ggml.add_space_prefix", false)
	k.text("tokenizer.chat_template", chatTemplate)
}
