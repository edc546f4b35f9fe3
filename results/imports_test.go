package results

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/results/exchange"
)

// Whatever rows llama-bench may write: importing them twice is importing them
// once, in any order, and what is stored is sound.
func TestImportLaws(t *testing.T) {
	w := newWorkshop(t)
	rapid.Check(t, func(rt *rapid.T) {
		var lines [][]byte
		for i := range rapid.IntRange(0, 6).Draw(rt, "rows") {
			gen := rapid.IntRange(0, 2).Draw(rt, "gen") * 64
			row := map[string]any{
				"build_commit": rapid.StringN(0, 12, -1).Draw(rt, "commit"), "cpu_info": rapid.String().Draw(rt, "cpu"),
				"model_filename": "/models/" + rapid.String().Draw(rt, "file"), "model_type": rapid.String().Draw(rt, "type"),
				"model_size": rapid.Int64Min(0).Draw(rt, "size"), "n_threads": rapid.IntRange(-2, 4096).Draw(rt, "threads"),
				"n_ubatch": rapid.Int32().Draw(rt, "ubatch"), "load_mode": rapid.SampledFrom([]string{"mmap", "dio", "none", "odd"}).Draw(rt, "mode"),
				"n_prompt": 512 - 4*gen, "n_gen": gen, "avg_ts": rapid.Float64Range(1e-6, 1e9).Draw(rt, "ts"), "stddev_ts": rapid.Float64Range(0, 1e6).Draw(rt, "sd"),
				"test_time":  time.Unix(rapid.Int64Range(1e9, 4e9).Draw(rt, "time"), int64(i)).UTC().Format(time.RFC3339),
				"samples_ns": rapid.SliceOfN(rapid.Int64(), 0, 4).Draw(rt, "samples"),
			}
			if gen == 128 {
				row["n_prompt"] = 0
			}
			line, err := json.Marshal(row)
			if err != nil {
				rt.Fatalf("%v", err)
			}
			lines = append(lines, line)
		}
		once := importAll(rt, w, lines)
		if twice := importAll(rt, w, append(append([][]byte{}, lines...), lines...)); twice != once {
			rt.Fatalf("importing twice is not importing once")
		}
		backwards := make([][]byte, len(lines))
		for i, l := range lines {
			backwards[len(lines)-1-i] = l
		}
		if importAll(rt, w, backwards) != once {
			rt.Fatalf("the order of rows matters")
		}
	})
}

func importAll(rt *rapid.T, w *workshop, lines [][]byte) string {
	ctx := context.Background()
	s := w.open(rt, "")
	defer s.Close()
	runs, notes, err := exchange.ReadLlamaBench(bytes.NewReader(bytes.Join(lines, []byte("\n"))), exchange.Known{})
	if err != nil || len(runs)+len(notes) != len(lines) {
		rt.Fatalf("%d runs and %d notes of %d rows: %v", len(runs), len(notes), len(lines), err)
	}
	rep, err := s.Import(ctx, runs, "peer")
	if err != nil || rep.Inserted+rep.Present != len(runs) {
		rt.Fatalf("%+v, %v", rep, err)
	}
	if check, err := s.Check(ctx, Recompute{}); err != nil || len(check.Problems) > 0 {
		rt.Fatalf("check: %v, %v", check.Problems, err)
	}
	d, err := s.Digest(ctx)
	if err != nil {
		rt.Fatalf("%v", err)
	}
	return fmt.Sprint(d)
}
