package device

import (
	"time"

	"github.com/bmoe/bmoe/engine/internal/llama"
)

// timeRepack lays the weights out anew and says how long one thread took; false
// when there is no other layout for them.
func timeRepack(m *llama.Matmul) (seconds float64, ok bool) {
	start := time.Now()
	ok = m.Repack()
	return time.Since(start).Seconds(), ok
}
