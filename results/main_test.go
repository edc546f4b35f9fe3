package results

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/bmoe/bmoe/results/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// childEnv makes the test binary write runs of machine N into the ledger named
// by its value, saying each acknowledged id, until it is killed or has written
// childRuns of them.
const (
	childEnv     = "BMOE_RESULTS_TEST_WRITE"
	childMachine = "BMOE_RESULTS_TEST_MACHINE"
	childRuns    = "BMOE_RESULTS_TEST_RUNS"
	childFirst   = "BMOE_RESULTS_TEST_FIRST"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		os.Exit(writeRuns(path))
	}
	// A check makes a dozen database files; -rapid.checks asks for more.
	if flag.Lookup("rapid.checks") != nil {
		_ = flag.Set("rapid.checks", "30")
	}
	os.Exit(m.Run())
}

func writeRuns(path string) int {
	number := func(name string) int {
		n, _ := strconv.Atoi(os.Getenv(name))
		return n
	}
	ctx := context.Background()
	s, err := Open(ctx, path, Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	machine, first := number(childMachine), number(childFirst)
	for i := range number(childRuns) {
		id, err := s.SaveRun(ctx, testRun(machine, first+i, 100), "", record.Slot{}, 0)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(id)
	}
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
