package results

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bmoe/bmoe/results/record"
)

// fillUp saves runs until that fails and returns those acknowledged.
func fillUp(t *testing.T, s *Store) (ids []string, err error) {
	t.Helper()
	for n := range 5000 {
		id, err := s.SaveRun(context.Background(), testRun(1, n, 500), "", record.Slot{}, 0)
		if err != nil {
			return ids, err
		}
		ids = append(ids, id)
	}
	t.Fatal("the disk does not fill up")
	return nil, nil
}

func judgeFull(t *testing.T, s *Store, ids []string, err error) {
	t.Helper()
	ctx := context.Background()
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), s.path) || Hint(err) == "" {
		t.Errorf("a full disk says %v (%s)", err, Hint(err))
	}
	if IsDataFault(err) {
		t.Error("a full disk is called a corrupt database")
	}
	rep, err := s.Check(ctx, Recompute{})
	must(t, err)
	if len(rep.Problems) > 0 {
		t.Errorf("check: %v", rep.Problems)
	}
	runs, err := s.Runs(ctx, RunFilter{})
	must(t, err)
	if len(ids) == 0 || len(runs) != len(ids) {
		t.Errorf("%d runs of %d acknowledged", len(runs), len(ids))
	}
}

func TestFullDisk(t *testing.T) {
	s := openTest(t, "r.db")
	_, err := s.writer.Exec("PRAGMA max_page_count = 150")
	must(t, err)
	ids, err := fillUp(t, s)
	judgeFull(t, s, ids, err)
	_, err = s.writer.Exec("PRAGMA max_page_count = 100000")
	must(t, err)
	must(t, second(s.SaveRun(context.Background(), testRun(2, 0, 5), "", record.Slot{}, 0)))
}

// The same on a file system that is really full, where we may mount one.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir).Run(); err != nil {
		t.Logf("cannot mount here (%v): TestFullDisk stands in", err)
		return
	}
	defer func() { _ = exec.Command("umount", "-l", dir).Run() }()
	s, err := Open(context.Background(), filepath.Join(dir, "r.db"), Options{})
	must(t, err)
	defer s.Close()
	ids, err := fillUp(t, s)
	judgeFull(t, s, ids, err)
}
