package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// ID is the content id of v: the hex sha256 of its canonical JSON. Clear the id
// field of an entity before asking for its id. A value that JSON cannot hold (a
// NaN, say) has no content id: the answer is then "", which nothing stores.
func ID(v any) string {
	canon, err := Canonical(v)
	if err != nil {
		return ""
	}
	return HashID(canon)
}

// HashID is the content id of a body that is canonical JSON already.
func HashID(canon []byte) string {
	sum := sha256.Sum256(canon)
	return hex.EncodeToString(sum[:])
}

// Canonical writes v as JSON with sorted keys, no white space and no HTML
// escapes. Numbers keep the digits they were written with: a 64-bit integer
// does not pass through a float.
func Canonical(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return Canonicalise(raw)
}

// Canonicalise rewrites one JSON document in canonical form.
func Canonicalise(raw []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var generic any
	if err := dec.Decode(&generic); err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	if dec.More() {
		return nil, fmt.Errorf("canonical form: more than one JSON document")
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(generic); err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
