package probes

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/planner"
)

// headTensor is the head of a model that has none of its own.
const headTensor = "token_embd.weight"

// rowTables are read one row a token, unless one of them is the output head.
var rowTables = []string{headTensor, "per_layer_token_embd.weight", "position_embd.weight", "token_types.weight"}

// ModelFacts derives every model fact from the file's layout; no tensor data
// is read and nothing is loaded.
func (h *Host) ModelFacts(m *model.Model) planner.ModelFacts {
	start := h.Now()
	f := modelFacts(m)
	stampModel(&f, h.since(start), stamp(start))
	return f
}

func modelFacts(m *model.Model) planner.ModelFacts {
	const meta = "the file's metadata"
	layers := layersOf(m)
	read, row := denseSplit(m)
	var f planner.ModelFacts
	f.Arch = planner.DerivedFact(m.Arch, meta)
	f.Layers = planner.DerivedFact(int64(m.Layers-m.MTPLayers), fmt.Sprintf("%d blocks less %d for multi-token prediction, which are not run", m.Layers, m.MTPLayers))
	f.MoeLayers = planner.DerivedFact(int64(len(layers.experts)), "layers that carry routed experts")
	f.Experts = planner.DerivedFact(int64(m.Experts), meta)
	f.ExpertsUsed = planner.DerivedFact(int64(m.ExpertsUsed), meta)
	f.TrainCtx = planner.DerivedFact(int64(m.ContextSize), meta)
	f.FileBytes = planner.DerivedFact(sum(m.Sizes), fmt.Sprintf("%d files", len(m.Sizes)))
	f.RoutedBytes = planner.DerivedFact(m.RoutedBytes(), "routed experts of the layers the graph runs")
	f.TokenCycle = planner.DerivedFact(m.TokenCycle(0), "one expert of every routed tensor, times the experts a token uses")
	f.DenseRead = planner.DerivedFact(read, "weights read whole for every token")
	f.DenseRow = planner.DerivedFact(row, "tables of which a token reads one row")
	f.DenseIdle = planner.DerivedFact(bytesOf(m.Unused), "blocks in the file that the graph does not run")
	f.Slices = planner.DerivedFact(sliceClasses(m), "expert slices by projection, type and size")
	f.Quants = planner.DerivedFact(quantShares(m), "types of the routed experts by bytes, most first")
	f.LayerExperts = planner.DerivedFact(largest(layers.experts), "routed experts of the largest layer")
	f.LayerOther = planner.DerivedFact(largest(layers.other), "other weights of the largest layer")
	f.TiedHead = planner.DerivedFact(m.TiedHead, "whether the embedding table is also the output head")
	f.HeadTable = planner.DerivedFact(headTable(m), "the embedding table's bytes, where it is also the output head")
	f.MTPUsed = planner.DerivedFact(false, "multi-token-prediction blocks are never run here")
	f.KElems, f.VElems = cacheElems(m)
	f.ExpertFile = planner.DerivedFact(filepath.Base(storageTarget(m).path), "the file that holds most expert bytes")
	return f
}

// perLayer is bytes by layer number.
type perLayer struct{ experts, other map[int]int64 }

func layersOf(m *model.Model) perLayer {
	l := perLayer{map[int]int64{}, map[int]int64{}}
	for i := range m.ExpertTensors {
		l.experts[m.ExpertTensors[i].Layer] += m.ExpertTensors[i].Bytes
	}
	for i := range m.Dense {
		var layer int
		if n, _ := fmt.Sscanf(m.Dense[i].Name, "blk.%d.", &layer); n == 1 {
			l.other[layer] += m.Dense[i].Bytes
		}
	}
	return l
}

// denseSplit divides the dense weights by how a token reads them.
func denseSplit(m *model.Model) (read, row int64) {
	for i := range m.Dense {
		t := &m.Dense[i]
		isHead := m.TiedHead && t.Name == headTensor
		if slices.Contains(rowTables, t.Name) && !isHead {
			row += t.Bytes
			continue
		}
		read += t.Bytes
	}
	return read, row
}

// headTable is the size of an embedding table that is also the head.
func headTable(m *model.Model) int64 {
	if i := slices.IndexFunc(m.Dense, func(t model.Tensor) bool { return t.Name == headTensor }); m.TiedHead && i >= 0 {
		return m.Dense[i].Bytes
	}
	return 0
}

func sliceClasses(m *model.Model) []planner.SliceClass {
	var out []planner.SliceClass
	for i := range m.ExpertTensors {
		t := &m.ExpertTensors[i]
		at := slices.IndexFunc(out, func(c planner.SliceClass) bool {
			return c.Projection == t.Projection && c.Quant == t.Quant && c.Bytes == t.SliceBytes
		})
		if at < 0 {
			out = append(out, planner.SliceClass{Projection: t.Projection, Quant: t.Quant, Bytes: t.SliceBytes})
			at = len(out) - 1
		}
		out[at].Layers++
	}
	return out
}

func quantShares(m *model.Model) []planner.QuantShare {
	byType := map[string]int64{}
	for i := range m.ExpertTensors {
		byType[m.ExpertTensors[i].Quant] += m.ExpertTensors[i].Bytes
	}
	out := make([]planner.QuantShare, 0, len(byType))
	for q, n := range byType {
		out = append(out, planner.QuantShare{Quant: q, Bytes: n})
	}
	slices.SortFunc(out, func(a, b planner.QuantShare) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Quant, b.Quant))
	})
	return out
}

// cacheElems counts the numbers a token adds to the K and V caches.
func cacheElems(m *model.Model) (k, v planner.Fact[int64]) {
	layers := m.Layers - m.MTPLayers
	if len(m.HeadsKV) == 0 || m.KeyLength == 0 || m.ValueLength == 0 {
		const why = "the file does not say how wide its K and V heads are"
		u := planner.UnknownFact[int64](why, "llama.cpp's projection of the context")
		return u, u
	}
	var heads int64
	for i, n := range m.HeadsKV {
		if i < layers {
			heads += int64(n)
		}
	}
	if len(m.HeadsKV) == 1 {
		heads = int64(m.HeadsKV[0]) * int64(layers)
	}
	return planner.DerivedFact(heads*int64(m.KeyLength), "KV heads over all layers, times their length"),
		planner.DerivedFact(heads*int64(m.ValueLength), "KV heads over all layers, times their length")
}

func largest(by map[int]int64) int64 {
	var n int64
	for _, b := range by {
		n = max(n, b)
	}
	return n
}

func sum(v []int64) int64 {
	var n int64
	for _, x := range v {
		n += x
	}
	return n
}

func bytesOf(t []model.Tensor) int64 {
	var n int64
	for i := range t {
		n += t[i].Bytes
	}
	return n
}

func stampModel(f *planner.ModelFacts, cost float64, at string) {
	f.Arch = f.Arch.Timed(cost, at)
	for _, x := range []*planner.Fact[int64]{
		&f.Layers, &f.MoeLayers, &f.Experts, &f.ExpertsUsed, &f.TrainCtx, &f.FileBytes, &f.RoutedBytes, &f.TokenCycle,
		&f.DenseRead, &f.DenseRow, &f.DenseIdle, &f.LayerExperts, &f.LayerOther, &f.HeadTable, &f.KElems, &f.VElems,
	} {
		*x = x.Timed(0, at)
	}
	f.Slices, f.Quants = f.Slices.Timed(0, at), f.Quants.Timed(0, at)
	f.TiedHead, f.MTPUsed, f.ExpertFile = f.TiedHead.Timed(0, at), f.MTPUsed.Timed(0, at), f.ExpertFile.Timed(0, at)
}
