package exchange

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/bmoe/bmoe/results/record"
)

// Benchfmt writes runs in the Go benchmark format, one line a run, so that
// benchstat compares arms: the lever is part of the name, what must not be
// mixed (machine, model, build) is file configuration.
func Benchfmt(w io.Writer, l *Ledger) error {
	out := benchfmt.NewWriter(w)
	for _, unit := range []struct{ name, better string }{{"sec/token", "lower"}, {"token/s", "higher"}, {"hit-rate", "higher"}, {"B/token", "lower"}} {
		meta := &benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit.name, Key: "better"}, OrigUnit: unit.name, Value: unit.better}
		if err := out.Write(meta); err != nil {
			return err
		}
	}
	levers := l.levers()
	for _, run := range l.Runs {
		if res := benchResult(run, levers); res != nil {
			if err := out.Write(res); err != nil {
				return err
			}
		}
	}
	return nil
}

func benchResult(s record.StoredRun, levers map[string]string) *benchfmt.Result {
	row := NewRow(s, levers)
	var values []benchfmt.Value
	add := func(v *float64, unit string) {
		if v != nil {
			values = append(values, benchfmt.Value{Value: *v, Unit: unit})
		}
	}
	add(row.DecodeS, "sec/token")
	add(row.PrefillRate, "token/s")
	add(row.HitRate, "hit-rate")
	add(row.BytesPerToken, "B/token")
	if len(values) == 0 || row.State != record.StateDone {
		return nil
	}
	res := &benchfmt.Result{Name: benchfmt.Name(benchName(row)), Iters: int(max(1, row.DecodeTokens)), Values: values}
	for _, c := range []struct{ key, value string }{
		{"goos", row.OS},
		{"goarch", row.Arch},
		{"cpu", row.CPU},
		{"machine", head(row.MachineID, 12)},
		{"tool", row.Tool},
		{"model", row.ModelName},
		{"quant", row.Quant},
		{"llama-cpp", row.LlamaCPP},
		{"commit", head(row.Commit, 12)},
	} {
		if c.value != "" {
			res.SetConfig(c.key, oneLine(c.value))
			if at, ok := res.ConfigIndex(c.key); ok {
				res.Config[at].File = true
			}
		}
	}
	return res
}

// benchName is Sweep/LEVER=ARM for a run of an experiment, else the knobs that
// most often tell two runs apart.
func benchName(row Row) string {
	if row.ExperimentID != nil {
		lever := "arm"
		if row.Lever != nil && *row.Lever != "" {
			lever = *row.Lever
		}
		return fmt.Sprintf("Sweep/experiment=%s/%s=%s", head(*row.ExperimentID, 8), word(lever), word(*row.Arm))
	}
	if !row.MoeStream {
		return "Run/resident/load-mode=" + word(row.LoadMode)
	}
	return fmt.Sprintf("Run/stream/cache-mb=%d/cache-policy=%s/io-threads=%d", row.CacheMB, word(row.CachePolicy), row.IOThreads)
}

func word(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == '/' || r == '=' || r == 0x7f {
			return '_'
		}
		return r
	}, s)
}

func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s))
}
