package record

import (
	"bytes"
	"encoding/json"

	"github.com/bmoe/bmoe/engine/counters"
)

// Sparse is a run's counters as they are stored: those that are zero are left
// out. A counter that a later program adds so changes no id of before.
type Sparse struct{ counters.Counters }

// MarshalJSON leaves out what is zero.
func (s Sparse) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(s.Counters)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	for name, value := range all {
		if bytes.Equal(value, []byte("0")) {
			delete(all, name)
		}
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads either form.
func (s *Sparse) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, &s.Counters) }
