// Package trace reads and writes routing traces: which experts each token
// picked, layer by layer, as CSV. A trace is enough to replay any cache policy
// at any size. It holds no text and no token ids.
//
// The file starts with comment lines and a row of column names:
//
//	# route_trace v1
//	# model=NAME arch=ARCH n_layer=N n_expert=N n_expert_used=N
//	# layer=N expert_bytes=N dense_bytes=N
//	turn,phase,step,layer,slot,expert,weight,residency,expert_bytes
//
// turn counts prompts from 0; phase is 0 in a prompt and 1 in decode; step is
// the token's position in the turn; slot is the rank of the pick within the
// token; weight is the router's weight, empty where it is not known; residency
// is 1 when the expert was in the cache as its batch began; expert_bytes is
// what the pick read from the file: 0 for a hit, and for a pick that repeats a
// miss of its own batch. Rows of one graph and layer stand together.
package trace

import "math"

// Phases of a turn.
const (
	Prompt = 0
	Decode = 1
)

// Limits a file may not exceed: far above any model, and small enough that a
// hostile header cannot ask for much memory.
const (
	MaxLayers  = 4096
	MaxExperts = 1 << 16
	maxCells   = 1 << 24 // layers times experts
)

// Layer is what one layer's header line says, in bytes.
type Layer struct {
	ExpertBytes int64 // one expert, over all its projections
	DenseBytes  int64 // everything else of the layer
}

// Header describes the model a trace was taken from.
type Header struct {
	Model   string // base name of the file
	Arch    string
	Experts int     // in a layer
	Used    int     // per token
	Layers  []Layer // by layer; zero where the file has no line for one
}

// Pick is one row: a token's choice of an expert.
type Pick struct {
	Turn   int32
	Phase  int32 // Prompt or Decode
	Step   int32 // token within the turn
	Layer  int32
	Slot   int32 // rank within the token
	Expert int32
	Hit    bool    // resident as the batch began
	Weight float32 // NaN when not known
	Bytes  int64   // read from the file for this pick
}

// NoWeight is the Weight of a pick whose router weight is not known.
var NoWeight = float32(math.NaN())

// Trace is a whole file.
type Trace struct {
	Header
	Picks []Pick
}

// SameBatch reports whether two neighbouring rows belong to one graph's run of
// one layer. All tokens of a prompt's graph share it; a decode step is its own.
func SameBatch(a, b *Pick) bool {
	return a.Layer == b.Layer && a.Turn == b.Turn && a.Phase == b.Phase && (a.Phase == Prompt || a.Step == b.Step)
}
