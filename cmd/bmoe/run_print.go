package main

import (
	"encoding/binary"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"strconv"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/results/record"
)

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// tokenHash identifies a token sequence: 64-bit FNV-1a over its ids.
func tokenHash(tokens []int32) string {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, tokens)
	return hex.EncodeToString(h.Sum(nil))
}

// writeSummary is what a person reads after a run.
func writeSummary(w io.Writer, r *record.Run) {
	m := &r.Measured
	fmt.Fprintf(w, "\nload      %.2f s\n", m.LoadS)
	if m.PromptTokens > 0 {
		fmt.Fprintf(w, "prompt    %d tokens, %.1f t/s, first token after %.2f s\n", m.PromptTokens, m.PrefillTokensPerS, m.TTFTS)
	}
	if m.DecodeTokens > 0 {
		fmt.Fprintf(w, "decode    %d tokens, %.2f t/s (%.1f ms a token)\n", m.DecodeTokens, 1/m.DecodeSPerToken, 1e3*m.DecodeSPerToken)
	}
	if r.Stats.Lookups > 0 {
		fmt.Fprintf(w, "experts   %.1f %% of decode lookups from the cache, %.1f MiB read a token\n", 100*m.HitRate, m.BytesPerToken/(1<<20))
	}
	fmt.Fprintf(w, "memory    %.0f MiB peak resident, %d major faults\n", float64(m.RSSBytes)/(1<<20), m.MajorFaults)
	for _, x := range r.Reserved {
		fmt.Fprintf(w, "reserved  %s\n", x)
	}
	if n := r.Stats.DeviceReservedBytes; n > 0 && len(r.Reserved) == 0 && r.Config.GPULayers > 0 {
		fmt.Fprintf(w, "reserved  %.1f MiB on devices, of a placement nobody projected\n", float64(n)/(1<<20))
	}
	if r.Prediction != nil {
		writePrediction(w, r)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "note      %s\n", warning)
	}
}

// writePrediction sets each predicted quantity beside the measured one.
func writePrediction(w io.Writer, r *record.Run) {
	p, m := &r.Prediction.Prediction, &r.Measured
	prefill := p.PrefillTokensPerS
	if e, ok := p.PrefillAt(m.PromptTokens); ok {
		prefill = e // at the length the prompt turned out to have
	}
	rows := []struct {
		name     string
		e        planner.Estimate
		measured float64
		scale    float64
		unit     string
	}{
		{"decode", p.DecodeSPerToken, m.DecodeSPerToken, 1e3, "ms a token"},
		{"prefill", prefill, m.PrefillTokensPerS, 1, "t/s"},
		{"hit rate", p.HitRate, m.HitRate, 100, "%"},
		{"read", p.BytesPerToken, m.BytesPerToken, 1. / (1 << 20), "MiB a token"},
	}
	for _, row := range rows {
		if row.e.Known {
			fmt.Fprintf(w, "predicted %-9s %.1f [%.1f, %.1f], measured %.1f %s\n", row.name, row.e.Point*row.scale, row.e.Lo*row.scale, row.e.Hi*row.scale, row.measured*row.scale, row.unit)
		}
	}
}

// writeTokenCSV writes one row per decoded token; the plan stands in comment
// lines above the column names.
func writeTokenCSV(f *os.File, r *record.Run) error {
	fmt.Fprintf(f, "# run=%s model=%s arch=%s build=%s\n", r.RunID, r.Model.ID, r.Model.Arch, r.Build.Commit)
	if r.Plan != nil {
		for _, d := range r.Plan.Decisions {
			fmt.Fprintf(f, "# plan %s=%s [%s] %s\n", d.Knob, d.Value, d.Provenance, d.Brief)
		}
	}
	w := csv.NewWriter(f)
	_ = w.Write([]string{"token", "id", "ns", "wait_ns", "manage_ns"})
	for i, ns := range r.TokenNS {
		row := []string{strconv.Itoa(i), strconv.Itoa(int(r.Tokens[i])), strconv.FormatInt(ns, 10), "", ""}
		if i < len(r.TokenWaitNS) {
			row[3] = strconv.FormatInt(r.TokenWaitNS[i], 10)
		}
		if i < len(r.TokenManageNS) {
			row[4] = strconv.FormatInt(r.TokenManageNS[i], 10)
		}
		_ = w.Write(row)
	}
	w.Flush()
	if err := errors.Join(w.Error(), f.Close()); err != nil {
		return withHint(fmt.Errorf("--csv: %w", err), "give --csv a file on a drive with room")
	}
	return nil
}
