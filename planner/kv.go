package planner

import "fmt"

// kvBits is the size of one number of the K or V cache by type, in bits:
// block bytes x 8 / block length.
var kvBits = map[string]float64{
	"f32": 32, "f16": 16, "bf16": 16, "q8_0": 8.5, "q4_0": 4.5, "q4_1": 5,
	"iq4_nl": 4.5, "q5_0": 5.5, "q5_1": 6,
}

// contextBytes is what the context reserves: llama.cpp's own projection, or
// the cache arithmetic at the chosen types where there is none.
func (st *planning) contextBytes() (int64, string) {
	if b, ok := st.p.Buffers.Context.Get(); ok {
		return b, "projected by llama.cpp"
	}
	k, okK := st.p.Model.KElems.Get()
	v, okV := st.p.Model.VElems.Get()
	if !okK || !okV {
		return 0, "unknown"
	}
	bits := float64(k)*kvBits[st.cfg.CacheTypeK] + float64(v)*kvBits[st.cfg.CacheTypeV]
	return int64(bits / 8 * float64(st.cfg.CtxSize)), fmt.Sprintf("%d tokens of %s keys and %s values", st.cfg.CtxSize, st.cfg.CacheTypeK, st.cfg.CacheTypeV)
}
