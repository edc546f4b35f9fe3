package device

import (
	"fmt"
	"github.com/bmoe/bmoe/planner/config"
	"testing"
	"time"
)

func TestManual(t *testing.T) {
	s := time.Now()
	List()
	fmt.Println("init", time.Since(s))
	s = time.Now()
	c := config.Default()
	w, err := Project([]string{"/tmp/p1.gguf"}, c, []int64{512, 2048, 4096})
	fmt.Println(w, err, time.Since(s))
	s = time.Now()
	r, err := Measure(t.Context(), "CPU", Spec{Shape: Shape{Type: 2, Cols: 512, Rows: 512, Experts: 32, Used: 4, Slice: 147456}, Threads: 2, Sweep: 128 << 20})
	fmt.Println(r.Narrow, r.Wide, r.NarrowRepack, r.WideRepack, r.CopyRate/1e9, r.RepackRate/1e9, r.Why, err, time.Since(s))
}
