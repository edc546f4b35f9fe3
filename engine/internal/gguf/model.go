// Package gguf reads what the engine needs to know of a model file without
// loading it: where every tensor and every expert lies, in which shard, and
// what the graph will use of it. It is an adapter over gguf-parser-go; shards
// are parsed one by one because the library's merged view loses the shard.
package gguf

// Tensor is one tensor of the file.
type Tensor struct {
	Name   string
	Type   uint32 // ggml type number
	Quant  string // its name, upper case: Q4_0, F32
	Dims   []int64
	Shard  int   // index into Model.Shards
	Offset int64 // absolute, in the shard's file
	Bytes  int64
}

// ExpertTensor is a routed-expert weight tensor: blk.N.*.weight with three
// dimensions, the third of them the expert count.
type ExpertTensor struct {
	Tensor
	Layer      int
	Projection string // gate, up, down, gate_up: the name before _exps
	Experts    int
	SliceBytes int64 // bytes of one expert: Offset + e*SliceBytes
}

// Model is the layout of a model file.
type Model struct {
	Path   string
	Shards []string // file names, in order; one for an unsplit file
	Sizes  []int64  // bytes of each shard

	Name        string
	Arch        string
	Layers      int // block_count, trailing MTP blocks included
	MTPLayers   int // trailing blocks llama.cpp does not run
	Experts     int
	ExpertsUsed int
	ContextSize int
	Embedding   int
	HeadsKV     []int // per layer, where the file says
	KeyLength   int
	ValueLength int
	VocabSize   int
	TiedHead    bool // no output.weight: the embedding table is the head

	ExpertTensors []ExpertTensor // of layers the graph runs, by layer then execution order
	Dense         []Tensor       // everything else the graph reads
	Unused        []Tensor       // MTP blocks
}

// RoutedBytes is the size of all routed experts that the graph may use.
func (m *Model) RoutedBytes() int64 {
	var n int64
	for i := range m.ExpertTensors {
		n += m.ExpertTensors[i].Bytes
	}
	return n
}

// DenseBytes is the size of everything read that is not a routed expert.
func (m *Model) DenseBytes() int64 {
	var n int64
	for i := range m.Dense {
		n += m.Dense[i].Bytes
	}
	return n
}

// TokenCycle is the number of expert bytes one token needs: for each layer one
// expert's bytes across the layer's expert tensors, times the routing width.
// used 0 means the model's own width.
func (m *Model) TokenCycle(used int) int64 {
	if used == 0 {
		used = m.ExpertsUsed
	}
	var n int64
	for i := range m.ExpertTensors {
		n += m.ExpertTensors[i].SliceBytes
	}
	return n * int64(used)
}
