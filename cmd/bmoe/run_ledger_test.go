package main

import (
	"path/filepath"
	"testing"

	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

// A run that is not stored has the id that a ledger would give it.
func TestUnrecordedRunHasItsContentID(t *testing.T) {
	d := &document{run: dbRun(1, 3, 2)}
	if err := (&ledger{}).save(d); err != nil {
		t.Fatal(err)
	}
	s, err := results.Open(t.Context(), filepath.Join(t.TempDir(), "r.db"), results.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stored, err := s.SaveRun(t.Context(), dbRun(1, 3, 2), "", record.Slot{}, 0)
	if err != nil || d.run.RunID != stored {
		t.Errorf("%v; not recorded the run is %s, stored it is %s", err, d.run.RunID, stored)
	}
}
