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
	off      int // of mem in use
	repack   *repacker
	bytes    int64
	locked   int64
	refused  int64
	released int64
	repacked int64
	head     tiedHead
}

// tiedHead is the output matrix of a model whose embedding table serves as one:
// the table is looked up by row and cannot be repacked, the matmul's copy can.
type tiedHead struct {
	embd   llama.Tensor
	layout *llama.Repack
	data   uintptr
}

// weight is one tensor with where its bytes are in the file.
type weight struct {
	t      llama.Tensor
	f      *gguf.Tensor
	bytes  []byte
	layout *llama.Repack // nil: as it is in the file
}

// placeDense gives each tensor its bytes as policy says: mmap, anon or pinned.
// What is repacked cannot stay in the mapping and is copied whatever the policy.
func placeDense(m *gguf.Model, tensors []llama.Tensor, policy string, release bool, r *repacker) (_ *dense, err error) {
	if release && policy == "mmap" {
		return nil, errors.New("--release-mmap with --dense-weights mmap: the weights live in the mapping; use --dense-weights anon")
	}
	d := &dense{repack: r}
	defer func() {
		if err != nil {
			_ = d.close()
		}
	}()
	if err := d.mapShards(m); err != nil {
		return nil, err
	}
	weights, err := d.weights(m, tensors)
	if err != nil {
		return nil, err
	}
	if err := d.place(m, weights, policy); err != nil {
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

func byName(tensors []gguf.Tensor) map[string]*gguf.Tensor {
	named := make(map[string]*gguf.Tensor, len(tensors))
	for i := range tensors {
		named[tensors[i].Name] = &tensors[i]
	}
	return named
}

// weights finds each tensor's bytes in the mappings and checks their size.
func (d *dense) weights(m *gguf.Model, tensors []llama.Tensor) ([]weight, error) {
	inFile, unused := byName(m.Dense), byName(m.Unused)
	seen := map[string]bool{}
	out := make([]weight, 0, len(tensors))
	for _, t := range tensors {
		name := t.Name()
		if f := unused[name]; f != nil { // asked for and never multiplied by
			t.Bind(address(d.maps[f.Shard][f.Offset:]))
			continue
		}
		f, ok := inFile[name]
		if !ok {
			return nil, fmt.Errorf("%s: llama.cpp asks for tensor %s, which the file does not have", m.Path, name)
		}
		if t.Bytes() != f.Bytes {
			return nil, fmt.Errorf("%s: tensor %s holds %d bytes, the model's parameters ask for %d", m.Path, name, f.Bytes, t.Bytes())
		}
		if !seen[name] {
			d.bytes += f.Bytes
		}
		seen[name] = true
		out = append(out, weight{t, f, d.maps[f.Shard][f.Offset : f.Offset+f.Bytes], d.repack.dense(f)})
	}
	return out, nil
}

// place binds every weight: into the mapping, or into memory of ours, 64-byte
// aligned and locked if asked. A refused lock leaves ordinary memory and is
// counted.
func (d *dense) place(m *gguf.Model, weights []weight, policy string) error {
	size := d.headBytes(m, weights)
	for _, w := range weights {
		if policy != "mmap" || w.layout != nil {
			size += (len(w.bytes) + 63) &^ 63
		}
	}
	if size > 0 {
		mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return fmt.Errorf("reserving %d MiB for the dense weights: %w", size>>20, err)
		}
		d.mem = mem
	}
	if policy == "pinned" {
		d.lock()
	}
	at := map[string]uintptr{}
	for _, w := range weights {
		if at[w.f.Name] == 0 {
			at[w.f.Name] = d.settle(&w, policy)
		}
		w.t.Bind(at[w.f.Name])
	}
	d.copyHead(m, weights)
	if policy != "mmap" {
		for _, m := range d.maps {
			_ = unix.Madvise(m, unix.MADV_DONTNEED) // the copies are what is read from now on
		}
	}
	return nil
}

// settle returns where a weight's bytes are to be read from now on.
func (d *dense) settle(w *weight, policy string) uintptr {
	if w.layout == nil && policy == "mmap" {
		return address(w.bytes)
	}
	dst := d.take(len(w.bytes))
	if w.layout == nil {
		copy(dst, w.bytes)
	} else {
		w.layout.Run(dst, w.bytes)
		w.layout.Mark(w.t)
		d.repacked += int64(len(dst))
	}
	return address(dst)
}

func (d *dense) take(n int) []byte {
	dst := d.mem[d.off : d.off+n]
	d.off += (n + 63) &^ 63
	return dst
}

// headLayout is the layout of a tied head, or nil.
func (d *dense) headLayout(m *gguf.Model, weights []weight) (*weight, *llama.Repack) {
	if !m.TiedHead {
		return nil, nil
	}
	for i := range weights {
		if weights[i].f.Name == "token_embd.weight" {
			return &weights[i], d.repack.of(weights[i].f)
		}
	}
	return nil, nil
}

func (d *dense) headBytes(m *gguf.Model, weights []weight) int {
	w, layout := d.headLayout(m, weights)
	if layout == nil {
		return 0
	}
	return (len(w.bytes) + 63) &^ 63
}

func (d *dense) copyHead(m *gguf.Model, weights []weight) {
	w, layout := d.headLayout(m, weights)
	if layout == nil {
		return
	}
	dst := d.take(len(w.bytes))
	layout.Run(dst, w.bytes)
	d.repacked += int64(len(dst))
	d.head = tiedHead{w.t, layout, address(dst)}
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
