package results

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/planner"
)

// FuzzPlanJSON: a stored plan from a foreign ledger is refused, or read and
// written back as itself, its private parts put where they belong.
func FuzzPlanJSON(f *testing.F) {
	plan, err := json.Marshal(testPlan(2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"prediction":{"made_at":"2026-01-01T00:00:00Z"}}`), plan, []byte(`{"decisions":{"0":"/m.gguf"},"reproduce":["-m","/m.gguf"]}`))
	f.Add([]byte(`{}`), []byte(`{"decisions":[{"knob":"model"}]}`), []byte(`{"decisions":{"-1":"x","9223372036854775807":"y"}}`))
	f.Add([]byte(`{"plan":1}`), []byte(`{"ledger":[{"bytes":1e30}]}`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, body, planBody, private []byte) {
		out, err := decodePrediction("id", string(body), string(planBody), string(private))
		if err != nil || out.Plan == nil {
			return
		}
		raw, err := json.Marshal(out.Plan)
		if err != nil {
			t.Fatalf("a plan that was read cannot be written: %v", err)
		}
		var back planner.Plan
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatalf("%s is not read back: %v", raw, err)
		}
		again, err := json.Marshal(back)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(raw), string(again)); diff != "" {
			t.Error(diff)
		}
	})
}
