package engine

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bmoe/bmoe/engine/internal/gguf"
	"github.com/bmoe/bmoe/engine/internal/llama"
)

// dense holds the weights of a streamed model that are not routed experts:
// pointed at in a mapping of the file, or copied into memory of our own.
type dense struct {
	maps     [][]byte
	mem      []byte
	bytes    int64
	locked   int64
	refused  int64
	released int64
}

// placeDense gives each tensor its bytes as policy says: mmap, anon or pinned.
func placeDense(m *gguf.Model, tensors []llama.Tensor, policy string, release bool) (_ *dense, err error) {
	if release && policy == "mmap" {
		return nil, errors.New("--release-mmap with --dense-weights mmap: the weights live in the mapping; use --dense-weights anon")
	}
	d := &dense{}
	defer func() {
		if err != nil {
			_ = d.close()
		}
	}()
	if err := d.mapShards(m); err != nil {
		return nil, err
	}
	source, err := d.sources(m, tensors)
	if err != nil {
		return nil, err
	}
	if policy == "mmap" {
		for _, t := range tensors {
			t.Bind(address(source[t.Name()]))
		}
		return d, nil
	}
	if err := d.copyIn(tensors, source, policy == "pinned"); err != nil {
		return nil, err
	}
	if release {
		err = d.unmap()
	}
	return d, err
}

func (d *dense) mapShards(m *gguf.Model) error {
	for i, name := range m.Shards {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		mem, err := unix.Mmap(int(f.Fd()), 0, int(m.Sizes[i]), unix.PROT_READ, unix.MAP_SHARED)
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("%s: mapping the file: %w", name, err)
		}
		// Only dense ranges are touched: read-ahead would bring experts in.
		_ = unix.Madvise(mem, unix.MADV_RANDOM)
		d.maps = append(d.maps, mem)
	}
	return nil
}

// sources finds each tensor's bytes in the mappings and checks their size.
func (d *dense) sources(m *gguf.Model, tensors []llama.Tensor) (map[string][]byte, error) {
	inFile := map[string]*gguf.Tensor{}
	for i := range m.Dense {
		inFile[m.Dense[i].Name] = &m.Dense[i]
	}
	out := map[string][]byte{}
	for _, t := range tensors {
		name := t.Name()
		f, ok := inFile[name]
		if !ok {
			return nil, fmt.Errorf("%s: llama.cpp asks for tensor %s, which the file does not have", m.Path, name)
		}
		if t.Bytes() != f.Bytes {
			return nil, fmt.Errorf("%s: tensor %s holds %d bytes, the model's parameters ask for %d", m.Path, name, f.Bytes, t.Bytes())
		}
		if _, seen := out[name]; !seen {
			d.bytes += f.Bytes
		}
		out[name] = d.maps[f.Shard][f.Offset : f.Offset+f.Bytes]
	}
	return out, nil
}

// copyIn copies every distinct tensor into memory of ours, 64-byte aligned,
// and locks it if asked. A refused lock leaves ordinary memory and is counted.
func (d *dense) copyIn(tensors []llama.Tensor, source map[string][]byte, pin bool) (err error) {
	var size int64
	for _, b := range source {
		size += (int64(len(b)) + 63) &^ 63
	}
	if d.mem, err = unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON); err != nil {
		return fmt.Errorf("reserving %d MiB for the dense weights: %w", size>>20, err)
	}
	if pin {
		d.lock()
	}
	at, off := map[string]uintptr{}, 0
	for _, t := range tensors {
		name := t.Name()
		if at[name] == 0 {
			copy(d.mem[off:], source[name])
			at[name] = address(d.mem) + uintptr(off)
			off += (len(source[name]) + 63) &^ 63
		}
		t.Bind(at[name])
	}
	for _, m := range d.maps {
		_ = unix.Madvise(m, unix.MADV_DONTNEED) // the copies are what is read from now on
	}
	return nil
}

// lock pins the copy in steps, so that a limit part way keeps what it granted.
func (d *dense) lock() {
	const step = 16 << 20
	for off := 0; off < len(d.mem); off += step {
		part := d.mem[off:min(off+step, len(d.mem))]
		if unix.Mlock(part) != nil {
			d.refused = int64(len(d.mem) - off)
			return
		}
		d.locked += int64(len(part))
	}
}

func (d *dense) unmap() error {
	var errs []error
	for _, m := range d.maps {
		d.released += int64(len(m))
		errs = append(errs, unix.Munmap(m))
	}
	d.maps = nil
	return errors.Join(errs...)
}

func (d *dense) close() error {
	err := d.unmap()
	if d.mem != nil {
		err = errors.Join(err, unix.Munmap(d.mem))
		d.mem = nil
	}
	return err
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
