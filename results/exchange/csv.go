package exchange

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/bmoe/bmoe/results/record"
)

// Ledger is what there is to export.
type Ledger struct {
	Runs        []record.StoredRun
	Experiments []record.Experiment
	Verdicts    []record.Verdict
	Fits        []record.Fit
}

func (l *Ledger) levers() map[string]string {
	levers := map[string]string{}
	for _, e := range l.Experiments {
		levers[e.ID] = e.Lever
	}
	return levers
}

// Columns are the names of a Row's columns.
func Columns() []string {
	t := reflect.TypeFor[Row]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("parquet"), ",")
	}
	return names
}

// CSV writes one row a run under a header.
func CSV(w io.Writer, l *Ledger) error {
	out := csv.NewWriter(w)
	if err := out.Write(Columns()); err != nil {
		return err
	}
	levers := l.levers()
	for _, run := range l.Runs {
		row := reflect.ValueOf(NewRow(run, levers))
		cells := make([]string, row.NumField())
		for i := range cells {
			cells[i] = cell(row.Field(i))
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func cell(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Time:
		return x.Format("2006-01-02T15:04:05.000000Z")
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case string:
		return guard(x)
	}
	return fmt.Sprint(v.Interface())
}

// guard keeps a spreadsheet from running a cell as a formula.
func guard(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// JSONL writes one document a line: experiments, runs, verdicts, fits, each
// saying in "entity" which it is.
func JSONL(w io.Writer, l *Ledger) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, e := range l.Experiments {
		if err := enc.Encode(struct {
			Entity string `json:"entity"`
			record.Experiment
		}{"experiment", e}); err != nil {
			return err
		}
	}
	for _, r := range l.Runs {
		if err := enc.Encode(struct {
			Entity string `json:"entity"`
			record.StoredRun
		}{"run", r}); err != nil {
			return err
		}
	}
	for _, v := range l.Verdicts {
		if err := enc.Encode(struct {
			Entity string `json:"entity"`
			record.Verdict
		}{"verdict", v}); err != nil {
			return err
		}
	}
	for _, f := range l.Fits {
		if err := enc.Encode(struct {
			Entity string `json:"entity"`
			record.Fit
		}{"fit", f}); err != nil {
			return err
		}
	}
	return nil
}
