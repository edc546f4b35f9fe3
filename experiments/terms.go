package experiments

import (
	"encoding/json"
	"time"

	"github.com/bmoe/bmoe/results/record"
)

// Terms are the conditions of an experiment that its design does not name. They
// are registered with it, so that a resumed experiment runs under the same.
type Terms struct {
	Warmup      int                 `json:"warmup"`               // runs of each arm before the first block
	EntryWaitS  float64             `json:"entry_wait_s"`         // longest wait for quiet before a run
	RunTimeoutS float64             `json:"run_timeout_s"`        // longest a run may take
	RunMemoryMB int                 `json:"run_memory_mb"`        // memory limit of a run; 0: none of its own
	MaxTimeS    float64             `json:"max_time_s"`           // longest the whole may take; 0: no bound
	Favour      string              `json:"favour,omitempty"`     // the arm every comparison is for
	Allowed     map[string][]string `json:"allowed,omitempty"`    // arm: knobs that may differ from the favoured arm
	NoiseSD     float64             `json:"noise_sd"`             // of paired log ratios, expected
	NoiseSource string              `json:"noise_source"`         // where that number is from
	MDE         float64             `json:"mde"`                  // ratio less one, before running; 0: nothing can be found
	Predict     string              `json:"predict,omitempty"`    // the band as it was typed
	AllowWork   bool                `json:"allow_work,omitempty"` // unequal work is compared all the same
}

func (t Terms) extra() map[string]any {
	raw, err := json.Marshal(t)
	if err != nil {
		return nil
	}
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return map[string]any{"terms": m}
}

// TermsOf reads an experiment's terms back.
func TermsOf(e *record.Experiment) Terms {
	var t Terms
	raw, err := json.Marshal(e.Extra["terms"])
	if err == nil {
		// Terms written by another version may lack a field; its zero is right.
		_ = json.Unmarshal(raw, &t)
	}
	return t
}

// EntryWait is the longest wait for quiet before a run.
func (t Terms) EntryWait() time.Duration { return seconds(t.EntryWaitS) }

// RunTimeout is the longest a run may take.
func (t Terms) RunTimeout() time.Duration { return seconds(t.RunTimeoutS) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
