package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// ID is the content id of v: the hex sha256 of its canonical JSON, which is
// what encoding/json writes for a value decoded into maps (sorted keys) and
// back. Clear the id field of an entity before asking for its id.
func ID(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("record: entity does not marshal: " + err.Error())
	}
	var generic any
	if err := json.Unmarshal(raw, &generic); err != nil {
		panic("record: " + err.Error())
	}
	canon, err := json.Marshal(generic)
	if err != nil {
		panic("record: " + err.Error())
	}
	sum := sha256.Sum256(canon)
	return hex.EncodeToString(sum[:])
}
