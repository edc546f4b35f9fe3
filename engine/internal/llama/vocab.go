package llama

/*
#include <stdlib.h>
#include "bridge.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

func (m *Model) vocab() *C.struct_llama_vocab { return C.llama_model_get_vocab(m.c()) }

// VocabSize is the number of tokens, which is the number of logits.
func (m *Model) VocabSize() int { return int(C.llama_vocab_n_tokens(m.vocab())) }

// IsEOG reports whether the token ends a generation.
func (m *Model) IsEOG(tok int32) bool {
	return bool(C.llama_vocab_is_eog(m.vocab(), C.llama_token(tok)))
}

// Tokenize turns text into tokens. first adds what the model wants at the
// beginning; control reads control tokens in the text as such.
func (m *Model) Tokenize(text string, first, control bool) ([]int32, error) {
	ctext := C.CString(text)
	defer C.free(unsafe.Pointer(ctext))
	n := len(text) + 8
	for {
		out := make([]int32, n)
		got := int(C.llama_tokenize(m.vocab(), ctext, C.int32_t(len(text)), (*C.llama_token)(unsafe.Pointer(&out[0])), C.int32_t(n), C.bool(first), C.bool(control)))
		if got >= 0 {
			return out[:got], nil
		}
		if -got <= n {
			return nil, errors.New("the prompt does not tokenise with this model's vocabulary")
		}
		n = -got
	}
}

// Piece is the text of one token. It may be part of a UTF-8 sequence.
func (m *Model) Piece(tok int32) string {
	buf := make([]byte, 64)
	for {
		n := int(C.llama_token_to_piece(m.vocab(), C.llama_token(tok), (*C.char)(unsafe.Pointer(&buf[0])), C.int32_t(len(buf)), 0, false))
		if n >= 0 {
			return string(buf[:n])
		}
		buf = make([]byte, -n)
	}
}

// Message is one turn of a conversation.
type Message struct{ Role, Content string }

// ApplyChat writes messages in the model's template, ending where the
// assistant is to answer.
func (m *Model) ApplyChat(msgs []Message) (string, error) {
	tmpl := m.ChatTemplate()
	if tmpl == "" {
		return "", errors.New("the model carries no chat template: leave --chat out")
	}
	ctmpl := C.CString(tmpl)
	defer C.free(unsafe.Pointer(ctmpl))
	cm := (*C.struct_llama_chat_message)(C.calloc(C.size_t(len(msgs)+1), C.size_t(unsafe.Sizeof(C.struct_llama_chat_message{}))))
	defer C.free(unsafe.Pointer(cm))
	view := unsafe.Slice(cm, len(msgs))
	size := 1024
	for i, msg := range msgs {
		view[i].role, view[i].content = C.CString(msg.Role), C.CString(msg.Content)
		defer C.free(unsafe.Pointer(view[i].role))
		defer C.free(unsafe.Pointer(view[i].content))
		size += 2 * len(msg.Content)
	}
	for range 2 {
		buf := make([]byte, size)
		n := int(C.llama_chat_apply_template(ctmpl, cm, C.size_t(len(msgs)), true, (*C.char)(unsafe.Pointer(&buf[0])), C.int32_t(size)))
		if n < 0 {
			return "", fmt.Errorf("llama.cpp does not know the model's chat template (%.40q...): leave --chat out", tmpl)
		}
		if n <= size {
			return string(buf[:n]), nil
		}
		size = n
	}
	return "", errors.New("the chat template does not settle on a size")
}
