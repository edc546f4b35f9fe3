package results

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bmoe/bmoe/results/exchange"
	"github.com/bmoe/bmoe/results/record"
)

// patched copies a ledger and changes bytes of it.
func patched(t *testing.T, from string, change func([]byte) []byte) string {
	t.Helper()
	raw, err := os.ReadFile(from)
	must(t, err)
	path := filepath.Join(t.TempDir(), "patched.db")
	must(t, os.WriteFile(path, change(raw), 0o600))
	return path
}

func TestOpenRefusesAndLeavesAlone(t *testing.T) {
	ctx := context.Background()
	good := ledger(t, t.TempDir(), "good.db", func(s *Store) { fill(t, s, 1) })
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   error
	}{
		"text":                {func([]byte) []byte { return []byte(strings.Repeat("some text\n", 200)) }, ErrNotDatabase},
		"a few bytes":         {func(b []byte) []byte { return b[:7] }, ErrNotDatabase},
		"half a header":       {func(b []byte) []byte { return b[:60] }, ErrTruncated},
		"half a file":         {func(b []byte) []byte { return b[:len(b)/2] }, ErrTruncated},
		"a byte too few":      {func(b []byte) []byte { return b[:len(b)-1] }, ErrTruncated},
		"another application": {func(b []byte) []byte { binary.BigEndian.PutUint32(b[68:], 0x0f055112); return b }, ErrForeign},
		"no application":      {func(b []byte) []byte { binary.BigEndian.PutUint32(b[68:], 0); return b }, ErrForeign},
		"newer schema":        {func(b []byte) []byte { binary.BigEndian.PutUint32(b[60:], 999); return b }, ErrNewer},
	} {
		for _, opts := range []Options{{}, {ReadOnly: true}} {
			path := patched(t, good, c.change)
			before, err := os.ReadFile(path)
			must(t, err)
			s, err := Open(ctx, path, opts)
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, c.want) || !IsDataFault(err) {
				t.Errorf("%s (%+v): %v, want %v", name, opts, err, c.want)
				continue
			}
			if Hint(err) == "" || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %q names no file, or its hint %q nothing to do", name, err, Hint(err))
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Errorf("%s: the file was changed", name)
			}
			if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
				t.Errorf("%s: left behind %v", name, left)
			}
		}
	}
}

func TestOpenFindsCorruptPages(t *testing.T) {
	ctx := context.Background()
	good := ledger(t, t.TempDir(), "good.db", func(s *Store) { fill(t, s, 1) })
	path := patched(t, good, func(b []byte) []byte {
		for i := len(b) / 2; i < len(b)/2+4096; i++ {
			b[i] ^= 0x5a
		}
		return b
	})
	s, err := Open(ctx, path, Options{ReadOnly: true})
	if err == nil {
		defer s.Close()
		var rep CheckReport
		if rep, err = s.Check(ctx, Recompute{}); err == nil && len(rep.Problems) == 0 {
			t.Error("a page of noise passes the check")
			return
		}
	}
	if err != nil && !IsDataFault(err) {
		t.Errorf("corrupt page: %v", err)
	}
}

func TestOpenWhatIsNoFile(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	if _, err := Open(ctx, dir, Options{}); !errors.Is(err, ErrNotDatabase) {
		t.Errorf("folder: %v", err)
	}
	if _, err := Open(ctx, filepath.Join(dir, "none.db"), Options{ReadOnly: true}); !errors.Is(err, ErrNotFound) {
		t.Errorf("missing: %v", err)
	}
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := Open(ctx, filepath.Join(file, "r.db"), Options{}); err == nil {
		t.Error("a folder that is a file is accepted")
	}
	if fifo := filepath.Join(dir, "fifo"); exec.Command("mkfifo", fifo).Run() == nil {
		if _, err := Open(ctx, fifo, Options{}); !errors.Is(err, ErrNotDatabase) {
			t.Errorf("pipe: %v", err)
		}
	}
	// An empty file is one nobody has written to yet.
	s, err := Open(ctx, file, Options{})
	must(t, err)
	s.Close()
}

func TestOddNames(t *testing.T) {
	for _, name := range []string{"a b.db", "50%.db", "what?.db", "a#b&c=d.db", "ünï.db"} {
		path := ledger(t, t.TempDir(), name, func(s *Store) {
			must(t, second(s.SaveRun(context.Background(), testRun(1, 0, 1), "", record.Slot{}, 0)))
		})
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		other := openTest(t, "o.db")
		if rep, err := other.Merge(context.Background(), []string{path}); err != nil || rep.Tables["run"].Inserted != 1 {
			t.Errorf("%s: merge %+v, %v", name, rep, err)
		}
	}
}

func TestDurability(t *testing.T) {
	s := openTest(t, "r.db")
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1"} {
		var got string
		must(t, s.writer.QueryRow("PRAGMA "+pragma).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
	if _, err := s.reader.Exec("CREATE TABLE x (y)"); err == nil {
		t.Error("the read side writes")
	}
}

func TestNetworkFileSystemIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	for _, kind := range []string{"nfs", "cifs", "smb2", "9p", "fuse.sshfs"} {
		_, err := Open(context.Background(), path, Options{fsType: func(string) string { return kind }})
		if !errors.Is(err, ErrNetworkFS) || !strings.Contains(err.Error(), kind) || !strings.Contains(Hint(err), "--db") {
			t.Errorf("%s: %v (%s)", kind, err, Hint(err))
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file was made all the same")
	}
}

// A folder in place of the shared-memory file has SQLite fail just as a medium
// does that cannot be written to.
func TestReadOnlyMedium(t *testing.T) {
	ctx := context.Background()
	path := ledger(t, t.TempDir(), "r.db", func(s *Store) { fill(t, s, 1) })
	must(t, os.Mkdir(path+"-shm", 0o700))
	s, err := Open(ctx, path, Options{ReadOnly: true})
	must(t, err)
	runs, err := s.Runs(ctx, RunFilter{})
	if err != nil || len(runs) != 5 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	if _, err := s.SaveRun(ctx, testRun(1, 1, 1), "", record.Slot{}, 0); !errors.Is(err, ErrReadOnly) {
		t.Errorf("writing: %v", err)
	}
	must(t, s.Close())
	other := openTest(t, "o.db")
	if rep, err := other.Merge(ctx, []string{path}); err != nil || rep.Tables["run"].Inserted != 5 {
		t.Errorf("merge from it: %+v, %v", rep, err)
	}
}

// The same on a real one, where we may mount it.
func TestReadOnlyMount(t *testing.T) {
	ctx := context.Background()
	from := ledger(t, t.TempDir(), "r.db", func(s *Store) { fill(t, s, 1) })
	dir := t.TempDir()
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", dir).Run(); err != nil {
		t.Logf("cannot mount here (%v): TestReadOnlyMedium stands in", err)
		return
	}
	defer func() { _ = exec.Command("umount", dir).Run() }()
	path, live := filepath.Join(dir, "r.db"), filepath.Join(dir, "live.db")
	must(t, copyFile(from, path))
	writing := openTest(t, "w.db")
	fill(t, writing, 1)
	for _, suffix := range []string{"", "-wal"} {
		must(t, copyFile(writing.path+suffix, live+suffix))
	}
	must(t, exec.Command("mount", "-o", "remount,ro", dir).Run())
	if _, err := Open(ctx, live, Options{ReadOnly: true}); !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "-wal") {
		t.Errorf("with a log beside it: %v", err)
	}
	s, err := Open(ctx, path, Options{ReadOnly: true})
	must(t, err)
	defer s.Close()
	if runs, err := s.Runs(ctx, RunFilter{}); err != nil || len(runs) != 5 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

// testdata/v1.db was written by the first schema and is never made again; -update
// only makes it when it is missing.
func TestFirstSchemaMigrates(t *testing.T) {
	ctx := context.Background()
	source := filepath.Join("testdata", "v1.db")
	if _, err := os.Stat(source); *update && errors.Is(err, fs.ErrNotExist) {
		s, err := Open(ctx, source, Options{version: 1})
		must(t, err)
		fill(t, s, 1)
		_, err = s.writer.Exec("PRAGMA journal_mode = DELETE")
		must(t, err)
		must(t, s.Close())
	}
	csv := func(s *Store) []byte {
		l, err := s.Ledger(ctx, RunFilter{})
		must(t, err)
		var b bytes.Buffer
		must(t, exchange.CSV(&b, l))
		return b.Bytes()
	}
	path := filepath.Join(t.TempDir(), "old.db")
	must(t, copyFile(source, path))
	before, err := os.ReadFile(path)
	must(t, err)

	// Reading leaves the file as it is.
	s, err := Open(ctx, path, Options{ReadOnly: true})
	must(t, err)
	seen := csv(s)
	must(t, s.Close())
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("reading an older ledger changed it")
	}

	// Writing migrates it, with a copy made first.
	s, err = Open(ctx, path, Options{})
	must(t, err)
	migrated := csv(s)
	check, err := s.Check(ctx, Recompute{})
	must(t, err)
	if len(check.Problems) > 0 {
		t.Errorf("check: %v", check.Problems)
	}
	must(t, s.Close())
	golden := filepath.Join("testdata", "v1.csv")
	if *update {
		must(t, os.WriteFile(golden, migrated, 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	for name, got := range map[string][]byte{"read through a copy": seen, "migrated": migrated} {
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	old, err := Open(ctx, path+".v1.bak", Options{ReadOnly: true})
	must(t, err)
	defer old.Close()
	if v, _ := userVersion(ctx, old.reader); v != SchemaVersion() || old.tempDir == "" {
		t.Error("the copy made before migrating is not of the old schema")
	}

	other := openTest(t, "o.db")
	if rep, err := other.Merge(ctx, []string{source}); err != nil || rep.Tables["run"].Inserted != 5 {
		t.Errorf("merge of an older ledger: %+v, %v", rep, err)
	}
	if now, _ := os.ReadFile(source); !bytes.Equal(before, now) {
		t.Error("merging an older ledger changed it")
	}
}
