package trace

// logChunk is how many picks a Log allocates at a time.
const logChunk = 1 << 16

// Log keeps a session's routing in memory, two bytes a pick, so that a run can
// leave its hit curve behind without writing a trace. It keeps the first picks
// it is given, up to a limit: a curve wants the routing from its cold start.
type Log struct {
	experts int
	bytes   []int64 // of one expert, by layer
	limit   int
	total   int
	full    bool
	chunks  [][]uint16
	batches []logged
}

// logged is one batch: where its picks are and what it was.
type logged struct {
	chunk, from, n int32
	layer          uint16
	prompt         bool
	tokens         int32
	turn           int32
}

// NewLog returns a Log for layers of experts experts; expertBytes[l] is the
// size of one expert of layer l. It keeps at most limit picks.
func NewLog(experts int, expertBytes []int64, limit int) *Log {
	return &Log{experts: experts, bytes: expertBytes, limit: limit}
}

// Add appends one graph's run of one layer: the picks of tokens tokens, in
// token order. A batch that would pass the limit ends the log. Add keeps no
// reference to ids.
func (l *Log) Add(turn, layer int, ids []int32, tokens int, prompt bool) {
	if l.full || l.total+len(ids) > l.limit || layer >= len(l.bytes) {
		l.full = l.full || l.total+len(ids) > l.limit
		return
	}
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last])+len(ids) > cap(l.chunks[last]) {
		l.chunks = append(l.chunks, make([]uint16, 0, max(logChunk, len(ids))))
		last++
	}
	c := l.chunks[last]
	l.batches = append(l.batches, logged{int32(last), int32(len(c)), int32(len(ids)), uint16(layer), prompt, int32(tokens), int32(turn)})
	for _, e := range ids {
		c = append(c, uint16(e))
	}
	l.chunks[last] = c
	l.total += len(ids)
}

// Full reports whether the log stopped before the session did.
func (l *Log) Full() bool { return l.full }

// Shape returns the experts of a layer and the bytes of one expert by layer.
func (l *Log) Shape() (experts int, expertBytes []int64) { return l.experts, l.bytes }

// Batch is one graph's run of one layer.
type Batch struct {
	Turn, Layer, Tokens int
	Prompt              bool
	Picks               []int32 // in token order; valid until the next batch
}

// Each calls f with every batch, in order.
func (l *Log) Each(f func(Batch)) {
	var picks []int32
	for _, b := range l.batches {
		picks = picks[:0]
		for _, e := range l.chunks[b.chunk][b.from : b.from+b.n] {
			picks = append(picks, int32(e))
		}
		f(Batch{Turn: int(b.turn), Layer: int(b.layer), Tokens: int(b.tokens), Prompt: b.prompt, Picks: picks})
	}
}
