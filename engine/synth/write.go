package synth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options is how to write.
type Options struct {
	Force    bool                    // replace files that exist
	Progress func(done, total int64) // called now and then, with bytes; may be nil
}

// Summary is what was written.
type Summary struct {
	Files       []string `json:"files"`
	Bytes       int64    `json:"bytes"`
	Tensors     int      `json:"tensors"`
	RoutedBytes int64    `json:"routed_bytes"`
	Seconds     float64  `json:"seconds"`
	BytesPerS   float64  `json:"bytes_per_s"`
}

// ErrExists is wrapped by the error for a file that is not to be replaced.
var ErrExists = errors.New("file exists")

// Write makes the model at path; with several shards path names the set. The
// files appear under their names only when all of them are complete.
func Write(ctx context.Context, path string, s Spec, o Options) (Summary, error) {
	b, err := build(s)
	if err != nil {
		return Summary{}, err
	}
	return b.write(ctx, path, o)
}

// output is one file being written.
type output struct {
	name, temp string
	file       *os.File
	head       []byte
	tensors    []tensor
	offsets    []int64
	end        int64
}

func (b *builder) write(ctx context.Context, path string, o Options) (sum Summary, err error) {
	start := time.Now()
	outs := b.split(path)
	if err := checkTargets(outs, o.Force); err != nil {
		return sum, err
	}
	defer func() {
		for _, out := range outs {
			if out.file != nil {
				err = errors.Join(err, out.file.Close())
			}
			if out.temp != "" {
				err = errors.Join(err, os.Remove(out.temp))
			}
		}
	}()
	for _, out := range outs {
		if err := out.create(); err != nil {
			return sum, err
		}
		sum.Files = append(sum.Files, out.name)
		sum.Bytes += out.end
		sum.Tensors += len(out.tensors)
	}
	if err := fillAll(ctx, outs, sum.Bytes, o.Progress); err != nil {
		return sum, err
	}
	for _, out := range outs {
		if err := out.publish(); err != nil {
			return sum, err
		}
	}
	sum.RoutedBytes = b.routedBytes()
	sum.Seconds = time.Since(start).Seconds()
	sum.BytesPerS = float64(sum.Bytes) / sum.Seconds
	return sum, nil
}

// routedBytes is the size of the experts that the graph runs.
func (b *builder) routedBytes() (n int64) {
	for l := range b.Layers {
		for _, t := range b.tensors {
			if strings.HasPrefix(t.name, blk(l)) && strings.HasSuffix(t.name, "_exps.weight") {
				n += t.size()
			}
		}
	}
	return n
}

var shardSuffix = regexp.MustCompile(`-\d{5}-of-\d{5}$`)

// split deals the tensors out to the shards, in order and about equal in size.
func (b *builder) split(path string) []*output {
	n := min(b.Shards, len(b.tensors))
	if n <= 1 {
		return []*output{newOutput(path, &b.keys, b.tensors)}
	}
	stem, _ := cutSuffix(path, ".gguf")
	stem = shardSuffix.ReplaceAllString(stem, "")
	var total, done int64
	for _, t := range b.tensors {
		total += t.size()
	}
	var outs []*output
	from := 0
	for i := range n {
		to := from + 1 // a shard holds at least one tensor, and leaves one for each after it
		done += b.tensors[from].size()
		for to < len(b.tensors)-(n-1-i) && (i == n-1 || done < total*int64(i+1)/int64(n)) {
			done += b.tensors[to].size()
			to++
		}
		k := &keys{}
		if i == 0 {
			*k = b.keys
		}
		k.u16("split.no", i)
		k.u16("split.count", n)
		k.i32("split.tensors.count", len(b.tensors))
		name := fmt.Sprintf("%s-%05d-of-%05d.gguf", stem, i+1, n)
		outs = append(outs, newOutput(name, k, b.tensors[from:to]))
		from = to
	}
	return outs
}

func cutSuffix(s, suffix string) (string, bool) {
	if n := len(s) - len(suffix); n > 0 && s[n:] == suffix {
		return s[:n], true
	}
	return s, false
}

func newOutput(name string, k *keys, ts []tensor) *output {
	out := &output{name: name, tensors: ts}
	out.head, out.offsets, out.end = header(k, ts)
	return out
}

// checkTargets refuses before any work what could not be published after it.
func checkTargets(outs []*output, force bool) error {
	for _, out := range outs {
		info, err := os.Lstat(out.name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case info.IsDir():
			return fmt.Errorf("%s: is a directory; name a file", out.name)
		case !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0:
			// A rename over a device would put a plain file in its place.
			return fmt.Errorf("%s: is a device or a pipe; a model is written to a file", out.name)
		case !force:
			return fmt.Errorf("%s: %w; --force replaces it", out.name, ErrExists)
		}
	}
	return nil
}

// plain drops the temporary name from an error: it means nothing to the reader.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// create makes the temporary file, of its full size, and writes the header.
func (out *output) create() error {
	f, err := os.CreateTemp(filepath.Dir(out.name), "."+filepath.Base(out.name)+".*.tmp")
	if err != nil {
		return fmt.Errorf("%s: %w", out.name, plain(err))
	}
	out.file, out.temp = f, f.Name()
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Truncate(out.end); err != nil {
		return fmt.Errorf("%s: reserving %d bytes: %w", out.name, out.end, err)
	}
	_, err = f.WriteAt(out.head, 0)
	return err
}

// publish gives the finished file its name.
func (out *output) publish() error {
	err := out.file.Close()
	out.file = nil
	if err != nil {
		return err
	}
	if err := os.Rename(out.temp, out.name); err != nil {
		return err
	}
	out.temp = ""
	return nil
}

// job is one unit of one tensor.
type job struct {
	out    *output
	tensor *tensor
	unit   int
	at     int64 // in the file
	bytes  int64
}

// fillAll makes all units on all cores. Each lands at its own place, so the
// order in which they finish does not matter.
func fillAll(ctx context.Context, outs []*output, total int64, progress func(done, total int64)) error {
	workers := runtime.GOMAXPROCS(0)
	jobs := make(chan job, 4*workers)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(jobs)
		return eachJob(outs, func(j job) error {
			select {
			case jobs <- j:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	var done atomic.Int64
	for range workers {
		g.Go(func() error {
			var buf []byte
			for j := range jobs {
				if int64(cap(buf)) < j.bytes {
					buf = make([]byte, j.bytes)
				}
				j.tensor.src.fill(buf[:j.bytes], j.unit)
				if _, err := j.out.file.WriteAt(buf[:j.bytes], j.at); err != nil {
					return fmt.Errorf("%s: tensor %s, part %s: %w", j.out.name, j.tensor.name, strconv.Itoa(j.unit), err)
				}
				if n := done.Add(j.bytes); progress != nil {
					progress(n, total)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// eachJob lists the units of all tensors.
func eachJob(outs []*output, do func(job) error) error {
	for _, out := range outs {
		for i := range out.tensors {
			t := &out.tensors[i]
			size, per := t.size(), t.src.unitBytes()
			for u := range t.units() {
				at := int64(u) * per
				if err := do(job{out, t, u, out.offsets[i] + at, min(per, size-at)}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
