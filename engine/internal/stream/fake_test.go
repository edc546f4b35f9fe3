package stream

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"
	"unsafe"
)

// fakeFile is a Source over bytes in memory that can be told to fail.
type fakeFile struct {
	data   []byte
	align  int64
	mu     sync.Mutex
	fault  func(lane int, off int64) (short int, err error) // nil: none
	delay  func() time.Duration
	active int
	most   int // lanes at once
}

func (f *fakeFile) Align() int64    { return f.align }
func (f *fakeFile) Direct() bool    { return f.align > 1 }
func (f *fakeFile) Name(int) string { return "fake.gguf" }
func (f *fakeFile) Close() error    { return nil }

func (f *fakeFile) ReadAt(lane, _ int, buf []byte, off int64) (int, error) {
	f.mu.Lock()
	f.active++
	f.most = max(f.most, f.active)
	fault, delay := f.fault, f.delay
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.active--; f.mu.Unlock() }()
	if delay != nil {
		if d := delay(); d > 0 {
			time.Sleep(d)
		}
	}
	if f.align > 1 {
		if off%f.align != 0 || int64(len(buf))%f.align != 0 || uintptr(unsafe.Pointer(unsafe.SliceData(buf)))%uintptr(f.align) != 0 {
			return 0, fmt.Errorf("read of %d at %d into %p is not aligned to %d", len(buf), off, buf, f.align)
		}
	}
	if off >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(buf, f.data[off:])
	if fault != nil {
		if short, err := fault(lane, off); err != nil || short > 0 {
			return max(n-short, 0), err
		}
	}
	if n < len(buf) {
		return n, io.EOF
	}
	return n, nil
}

// binding is what a tensor was last pointed at.
type binding struct {
	data   uintptr
	n      int
	stride int64
}

type fakeBinder map[[2]int]binding

func (b fakeBinder) Bind(layer, proj int, data uintptr, n int, stride int64) {
	b[[2]int{layer, proj}] = binding{data, n, stride}
}

// tb is what testing and rapid have in common.
type tb interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Error(args ...any)
	Cleanup(func())
}

// fakeModel drives a Stream as a graph would and checks every byte it is
// served.
type fakeModel struct {
	t     tb
	cfg   Config
	src   *fakeFile
	bound fakeBinder
	s     *Stream
	slots []int32
}

// newFake lays out a model whose slices are sizes[layer%len][proj] bytes.
func newFake(t tb, cfg Config, align int64, sizes [][]int64) *fakeModel {
	m := &fakeModel{t: t, cfg: cfg, bound: fakeBinder{}, src: &fakeFile{align: align}}
	off := int64(96)
	for l := range cfg.Layers {
		for p, size := range sizes[l%len(sizes)] {
			if size > 0 {
				m.cfg.Tensors = append(m.cfg.Tensors, Tensor{Layer: l, Proj: p, Offset: off, Slice: size})
				off += size * int64(cfg.Experts)
			}
		}
	}
	m.src.data = make([]byte, off)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range m.src.data {
		m.src.data[i] = byte(r.Uint32())
	}
	var err error
	if m.s, err = New(m.cfg, m.src, m.bound); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.s.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// graph computes tokens rows; pick gives a layer's ids.
func (m *fakeModel) graph(tokens int, prompt bool, pick func(layer int) []int32) error {
	return m.graphWith(tokens, prompt, pick, func(int) {})
}

// graphWith also calls routed when a layer has been.
func (m *fakeModel) graphWith(tokens int, prompt bool, pick func(layer int) []int32, routed func(layer int)) error {
	if _, err := m.s.Begin(tokens, prompt); err != nil {
		return err
	}
	if len(m.slots) < tokens*m.cfg.Used {
		m.slots = make([]int32, tokens*m.cfg.Used)
	}
	for l := range m.cfg.Layers {
		if m.s.plan.tensors[l] == [numProj]*Tensor{} {
			continue // the graph of such a layer has no router
		}
		ids := pick(l)
		slots := m.slots[:len(ids)]
		if tokens == 1 && m.cached(l, ids, slots) {
			m.s.Resident(l, ids, m.cfg.Used, 1) // as the hook answers it
		} else if !m.s.Route(l, ids, m.cfg.Used, tokens, slots) {
			return m.s.Err()
		}
		routed(l)
		for _, p := range execOrder {
			t := m.s.plan.tensors[l][p]
			if t == nil {
				continue
			}
			if m.cfg.Overlap && !m.s.Wait(l, p) {
				return m.s.Err()
			}
			m.check(t, ids, slots)
		}
	}
	return nil
}

// cached looks a routing up in the slot table.
func (m *fakeModel) cached(layer int, ids, slots []int32) bool {
	for i, e := range ids {
		if slots[i] = m.s.Slots()[layer*m.cfg.Experts+int(e)]; slots[i] < 0 {
			return false
		}
	}
	return true
}

// check compares what the matmul would read with the file.
func (m *fakeModel) check(t *Tensor, ids, slots []int32) {
	b := m.bound[[2]int{t.Layer, t.Proj}]
	for i, e := range ids {
		if slots[i] < 0 || int(slots[i]) >= b.n {
			m.t.Fatalf("layer %d expert %d: slot %d of %d", t.Layer, e, slots[i], b.n)
		}
		at := b.data + uintptr(int64(slots[i])*b.stride)
		got := unsafe.Slice((*byte)(pointer(at)), t.Slice)
		off := t.Offset + int64(e)*t.Slice
		if !bytes.Equal(got, m.src.data[off:off+t.Slice]) {
			m.t.Fatalf("layer %d expert %d projection %s: other bytes than the file's", t.Layer, e, projNames[t.Proj])
		}
	}
}

// pointer is the address of memory that Go does not manage.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// picks draws used distinct experts for each of tokens rows, low ids likelier.
func picks(r *rand.Rand, experts, used, tokens int) []int32 {
	var ids []int32
	for range tokens {
		seen := map[int32]bool{}
		for len(seen) < used {
			x := r.Float64()
			e := int32(x * x * float64(experts))
			if !seen[e] {
				seen[e] = true
				ids = append(ids, e)
			}
		}
	}
	return ids
}
