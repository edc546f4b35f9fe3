package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/results"
	"github.com/bmoe/bmoe/results/record"
)

// testedBlocks are the blocks of docs/fleet.md that say they are tested.
func testedBlocks(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "fleet.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)<!-- tested: ([a-z-]+) -->\n```(?:sql|sh)\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		blocks[m[1]] = m[2]
	}
	if n := strings.Count(string(raw), "<!-- tested:"); len(blocks) != n || n < 6 {
		t.Fatalf("%d tested blocks found of %d", len(blocks), n)
	}
	return blocks
}

// The CI job of docs/fleet.md, with bmoe run in this process.
func TestFleetTeamJob(t *testing.T) {
	script := testedBlocks(t)["team"]
	dir := t.TempDir()
	t.Chdir(dir)
	var expected []string
	for machine, name := range map[int]string{1: "alice", 2: "bob"} {
		db := filepath.Join(dir, name+".db")
		_, run := dbLedger(t, db, machine)
		expected = append(expected, run[:8])
		ok(t, "db", "export", "--db", db, "--format", "db", "-o", filepath.Join("incoming", name+".db"))
	}
	outputs := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(script), "\n") {
		if line == "set -eu" {
			continue
		}
		line, file, _ := strings.Cut(line, " > ")
		words := strings.Fields(line)
		if words[0] != "bmoe" {
			t.Fatalf("the job runs %q", words[0])
		}
		outputs[file] = ok(t, words[1:]...)
	}
	var rep results.MergeReport
	if err := json.Unmarshal([]byte(outputs["merge.json"]), &rep); err != nil || rep.Tables["run"].Inserted != 26 {
		t.Errorf("merge.json: %v, %+v", err, rep)
	}
	page, err := os.ReadFile(filepath.Join("site", "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range expected {
		if !strings.Contains(string(page), id) {
			t.Errorf("the report does not have run %s", id)
		}
	}
}

// duckdb answers queries about the folder dir.
func duckdb(t *testing.T, dir string) func(sql string) []map[string]any {
	t.Helper()
	pkg, err := os.ReadFile(filepath.Join("testdata", "duckdb", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`node-api": "([^"]+)"`).FindSubmatch(pkg)[1]
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(cache, "bmoe", "duckdb-"+string(version))
	if _, err := os.Stat(filepath.Join(modules, "node_modules")); err != nil {
		if _, err := exec.LookPath("npm"); err != nil {
			t.Skip("npm is not installed, so DuckDB could not be")
		}
		t.Fatalf("DuckDB is not in %s: `make setup` puts it there", modules)
	}
	script, err := filepath.Abs(filepath.Join("testdata", "duckdb", "query.js"))
	if err != nil {
		t.Fatal(err)
	}
	return func(sql string) (rows []map[string]any) {
		t.Helper()
		cmd := exec.Command("node", script, modules)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(sql)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s\n%s", err, errs.String(), sql)
		}
		if err := json.Unmarshal(out, &rows); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return rows
	}
}

func number(t *testing.T, v any) float64 {
	t.Helper()
	switch x := v.(type) {
	case float64:
		return x
	case string: // 64-bit integers and decimals
		f, err := strconv.ParseFloat(x, 64)
		if err == nil {
			return f
		}
	}
	t.Fatalf("%v is no number", v)
	return 0
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

func middle(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func TestFleetQueries(t *testing.T) {
	dir := t.TempDir()
	ask := duckdb(t, dir)
	blocks := testedBlocks(t)
	db := filepath.Join(dir, "team.db")
	dbLedger(t, db, 1)
	dbLedger(t, db, 2)
	ok(t, "db", "export", "--db", db, "--format", "parquet", "-o", filepath.Join(dir, "fleet"))
	s, err := results.Open(t.Context(), db, readOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runs, err := s.Runs(t.Context(), results.RunFilter{Samples: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("runs", func(t *testing.T) { fleetRuns(t, ask(blocks["runs"]), db, runs) })
	t.Run("by-model", func(t *testing.T) { fleetByModel(t, ask(blocks["by-model"]), runs) })
	t.Run("levers", func(t *testing.T) { fleetLevers(t, ask(blocks["levers"]), s) })
	t.Run("predictions", func(t *testing.T) { fleetPredictions(t, ask(blocks["predictions"]), runs) })
	t.Run("tokens", func(t *testing.T) { fleetTokens(t, ask(blocks["tokens"]), runs) })
}

// fleetRuns compares with the page that report prints, figure by figure.
func fleetRuns(t *testing.T, rows []map[string]any, db string, runs []record.StoredRun) {
	if len(rows) != len(runs) || len(rows) == 0 {
		t.Fatalf("%d rows of %d runs", len(rows), len(runs))
	}
	page := ok(t, "report", "--db", db)
	for i, row := range rows {
		m, p := runs[i].Run.Measured, runs[i].Run.Prediction
		if row["run_id"] != runs[i].Run.RunID || !near(number(t, row["decode_s_per_token"]), m.DecodeSPerToken) ||
			!near(number(t, row["hit_rate"]), m.HitRate) || !near(number(t, row["lo"]), p.DecodeSPerToken.Lo) {
			t.Errorf("row %d: %v of %+v", i, row, m)
		}
		line := strings.Join(regexp.MustCompile(`(?m)^\|.*`+runs[i].Run.RunID[:8]+`.*$`).FindAllString(page, -1), "\n")
		if !printed(line, number(t, row["decode_s_per_token"])) || !printed(line, 100*number(t, row["hit_rate"])) {
			t.Errorf("the report says otherwise of run %d: %s (%v)", i, line, row)
		}
	}
}

var figure = regexp.MustCompile(`[-+]?\d+(\.\d+)?`)

// printed reports whether a line of a table has the figure, rounded.
func printed(line string, want float64) bool {
	for _, text := range figure.FindAllString(line, -1) {
		if v, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(v-want) <= 5e-4*math.Abs(want) {
			return true
		}
	}
	return false
}

func fleetByModel(t *testing.T, rows []map[string]any, runs []record.StoredRun) {
	byMachine := map[string][]float64{}
	for _, r := range runs {
		id := r.Run.Machine.ID[:12]
		byMachine[id] = append(byMachine[id], r.Run.Measured.DecodeSPerToken)
	}
	if len(rows) != len(byMachine) {
		t.Fatalf("%d rows of %d machines", len(rows), len(byMachine))
	}
	for _, row := range rows {
		values := byMachine[row["machine"].(string)]
		if int(number(t, row["runs"])) != len(values) || !near(number(t, row["median_s_per_token"]), middle(values)) {
			t.Errorf("%v; want %d runs, median %v", row, len(values), middle(values))
		}
	}
}

func fleetLevers(t *testing.T, rows []map[string]any, s *results.Store) {
	verdicts, err := s.Verdicts(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var effects []float64
	for _, v := range verdicts {
		effects = append(effects, v.Comparisons[0].Effect)
	}
	if len(rows) != 1 || len(effects) != 2 {
		t.Fatalf("%d rows, %d verdicts", len(rows), len(effects))
	}
	row := rows[0]
	if row["lever"] != "io-threads" || row["arm"] != "4" || number(t, row["machines"]) != 2 || number(t, row["better"]) != 2 || !near(number(t, row["median_effect"]), middle(effects)) {
		t.Errorf("%v; effects %v", row, effects)
	}
}

func fleetPredictions(t *testing.T, rows []map[string]any, runs []record.StoredRun) {
	errs, inside := map[string][]float64{}, map[string]float64{}
	for _, r := range runs {
		id, m, e := r.Run.Machine.ID[:12], r.Run.Measured.DecodeSPerToken, r.Run.Prediction.DecodeSPerToken
		errs[id] = append(errs[id], math.Log(m/e.Point))
		if m >= e.Lo && m <= e.Hi {
			inside[id]++
		}
	}
	if len(rows) != len(errs) {
		t.Fatalf("%d rows of %d machines", len(rows), len(errs))
	}
	for _, row := range rows {
		id := row["machine"].(string)
		n := float64(len(errs[id]))
		if number(t, row["n"]) != n || !near(number(t, row["bias"]), middle(errs[id])) || !near(number(t, row["coverage"]), inside[id]/n) {
			t.Errorf("%v; want n %v, bias %v, coverage %v", row, n, middle(errs[id]), inside[id]/n)
		}
	}
}

func fleetTokens(t *testing.T, rows []map[string]any, runs []record.StoredRun) {
	byLanes := map[int][]float64{}
	for _, r := range runs {
		for _, ns := range r.Run.TokenNS {
			byLanes[r.Run.Config.IOThreads] = append(byLanes[r.Run.Config.IOThreads], float64(ns)/1e6)
		}
	}
	if len(rows) != len(byLanes) || len(rows) != 2 {
		t.Fatalf("%d rows of %d settings", len(rows), len(byLanes))
	}
	for _, row := range rows {
		values := byLanes[int(number(t, row["io_threads"]))]
		if int(number(t, row["tokens"])) != len(values) || !near(number(t, row["median_ms"]), middle(values)) {
			t.Errorf("%v; want %d tokens, median %v ms", row, len(values), middle(values))
		}
	}
}
