package results

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/results/exchange"
	"github.com/bmoe/bmoe/results/record"
)

// What an experiment says in words, and what was said of it later, may name a
// folder, a person or a host: at home all of it is shown, and no export has it.
func TestWordsOfAnExperimentStayAtHome(t *testing.T) {
	ctx := context.Background()
	s := openTest(t, "r.db")
	e := testExperiment(1, 0)
	e.Question = "does /home/alice/model.gguf decode faster?"
	e.Falsifier = "what alice@buildhost measured"
	e.Extra = map[string]any{
		"terms":         map[string]any{"noise_source": "/home/alice/notes", "warmup": 1.0},
		"~/alice/a.txt": []any{"alice-laptop:8080", 2.5, nil},
	}
	e.ID = e.ContentID()
	id, err := s.SaveExperiment(ctx, e)
	must(t, err)
	must(t, s.AddEvent(ctx, record.Event{Kind: record.EventNote, Subject: id, Why: "see /home/alice/log.txt", At: time.Now()}))
	must(t, second(s.SaveVerdict(ctx, record.Verdict{ExperimentID: id, Method: "m/1"})))

	got, err := s.Experiment(ctx, id)
	must(t, err)
	for _, pair := range [][2]any{{e.Question, got.Question}, {e.Falsifier, got.Falsifier}, {e.Extra, got.Extra}} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("at home (-said +shown):\n%s", diff)
		}
	}
	if again := got.ContentID(); again != id {
		t.Errorf("what comes back has the id %s, was %s", again, id)
	}

	path := filepath.Join(t.TempDir(), "shared.db")
	must(t, second(s.ExportDB(ctx, path, false)))
	raw, err := os.ReadFile(path)
	must(t, err)
	leaks(t, "shared copy", raw)
	l, err := s.Ledger(ctx, RunFilter{})
	must(t, err)
	var lines bytes.Buffer
	must(t, exchange.JSONL(&lines, l))
	leaks(t, "jsonl", lines.Bytes())
	if !bytes.Contains(lines.Bytes(), []byte("decode faster?")) {
		t.Error("the question itself is not exported: nothing was tested")
	}

	mergedCopy(t, path)
}
