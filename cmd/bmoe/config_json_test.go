package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/planner/config"
)

func TestConfigJSONRefusesWhatItCannotMean(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"unknown knob":   {`{"model":"m","cash_mb":1}`, "cash_mb"},
		"out of range":   {`{"model":"m","io_threads":100000}`, "--io-threads"},
		"wrong type":     {`{"model":"m","overlap":"yes"}`, "overlap"},
		"unknown choice": {`{"model":"m","dense_weights":"granite"}`, "--dense-weights"},
		"two documents":  {`{"model":"m"}{"model":"n"}`, "after the configuration"},
		"a torn end":     {`{"model":"m"`, "unexpected EOF"},
		"nothing":        {``, "is empty"},
		"a number":       {`{"model":5}`, "model: a JSON number cannot be its value, want a string"},
		"a fraction":     {`{"model":"m","cache_mb":1.5}`, "cache_mb: a JSON number 1.5 cannot be its value, want a whole number"},
		"an array":       {`[]`, "want an object"},
		"a knob twice":   {`{"model":"m","model":"n"}`, "model is given twice"},
		"in two cases":   {`{"model":"m","Model":"n"}`, "model is given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readConfigJSON(t.Context(), strings.NewReader(tc.text), "-")
			var usage usageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want a usage error that names %q", err, tc.want)
			}
		})
	}
}

// FuzzConfigJSON: what is accepted is in range and reads back as itself.
func FuzzConfigJSON(f *testing.F) {
	whole, err := json.Marshal(config.Default())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"model":"m","cache_mb":-1,"stop":["a,b",""],"temp":1e-320}`))
	f.Add([]byte(`{"n_predict":9223372036854775807}`))
	f.Add([]byte(`{"model":"m","stop":[]}`))
	f.Add([]byte(`{} {}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, pins, err := readConfigJSON(t.Context(), bytes.NewReader(data), "-")
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepted what is no JSON document: %q", data)
		}
		for _, p := range config.Table() {
			if _, ok := pins[p.Name]; !ok {
				t.Errorf("%s is not pinned", p.Name)
			}
			again := config.Default()
			if err := p.Set(&again, p.Get(&cfg)); err != nil {
				t.Errorf("accepted a value that its flag refuses: %v", err)
			}
		}
		raw, err := json.Marshal(cfg)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := readConfigJSON(t.Context(), bytes.NewReader(raw), "-")
		if err != nil {
			t.Fatalf("%s is not read back: %v", raw, err)
		}
		if diff := cmp.Diff(cfg, back); diff != "" {
			t.Errorf("read back it differs:\n%s", diff)
		}
	})
}
