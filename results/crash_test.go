package results

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/bmoe/bmoe/results/record"
)

// writer starts a program that writes runs.
func writer(t *testing.T, path string, machine, first, runs int) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+path, fmt.Sprintf("%s=%d", childMachine, machine), fmt.Sprintf("%s=%d", childFirst, first), fmt.Sprintf("%s=%d", childRuns, runs))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// A program is killed 200 times while it writes, sometimes while it opens the
// ledger, and each time everything it was told is stored must be there.
func TestKilledWhileWriting(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "r.db")
	rng := rand.New(rand.NewPCG(1, 2))
	acknowledged := map[string]bool{}
	for n := range 200 {
		cmd, lines := writer(t, path, 1, 1000*n, 500)
		for range rng.IntN(4) {
			if lines.Scan() {
				acknowledged[lines.Text()] = true
			}
		}
		time.Sleep(time.Duration(rng.IntN(6000)) * time.Microsecond)
		must(t, cmd.Process.Kill())
		for lines.Scan() { // said before it died
			if len(lines.Text()) == 64 {
				acknowledged[lines.Text()] = true
			}
		}
		_ = cmd.Wait()
		if n%20 == 19 {
			survived(ctx, t, path, acknowledged)
		}
	}
	if len(acknowledged) < 200 {
		t.Errorf("only %d runs were written: the test tests little", len(acknowledged))
	}
}

func survived(ctx context.Context, t *testing.T, path string, acknowledged map[string]bool) {
	t.Helper()
	s, err := Open(ctx, path, Options{})
	must(t, err)
	defer s.Close()
	rep, err := s.Check(ctx, Recompute{})
	must(t, err)
	if len(rep.Problems) > 0 {
		t.Fatalf("check: %v", rep.Problems)
	}
	runs, err := s.Runs(ctx, RunFilter{Samples: true})
	must(t, err)
	stored := map[string]bool{}
	for _, r := range runs {
		stored[r.Run.RunID] = len(r.Run.TokenNS) == 100 // whole, not half
	}
	for id := range acknowledged {
		if !stored[id] {
			t.Fatalf("run %s was acknowledged and is not there whole", id)
		}
	}
}

// Two programs write and this one reads, all at once, from the first moment of
// the file on.
func TestTwoWritersAndAReader(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "r.db")
	const each = 60
	var cmds []*exec.Cmd
	var drained sync.WaitGroup
	for machine := 1; machine <= 2; machine++ {
		cmd, lines := writer(t, path, machine, 0, each)
		cmds = append(cmds, cmd)
		drained.Go(func() {
			for lines.Scan() {
			}
		})
	}
	s, err := Open(ctx, path, Options{})
	must(t, err)
	defer s.Close()
	last, reads := 0, 0
	for deadline := time.Now().Add(2 * time.Minute); last < 2*each; reads++ {
		runs, err := s.Runs(ctx, RunFilter{})
		must(t, err)
		if len(runs) < last {
			t.Fatalf("a reader saw %d runs after %d", len(runs), last)
		}
		if last = len(runs); time.Now().After(deadline) {
			t.Fatalf("%d runs after two minutes", last)
		}
		must(t, second(s.SaveRun(ctx, testRun(3, 0, 1), "", record.Slot{}, 0))) // the reader has a word too
		if last == 2*each+1 {
			break
		}
	}
	drained.Wait()
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a writer failed: %v", err)
		}
	}
	if runs, err := s.Runs(ctx, RunFilter{}); err != nil || len(runs) != 2*each+1 {
		t.Errorf("%d runs, %v; want %d", len(runs), err, 2*each+1)
	}
	rep, err := s.Check(ctx, Recompute{})
	must(t, err)
	if len(rep.Problems) > 0 {
		t.Errorf("check: %v", rep.Problems)
	}
	t.Logf("%d reads beside %d writes", reads, 2*each)
}
