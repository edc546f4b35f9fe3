package rpcdev

import (
	"strings"
	"testing"
	"time"

	"github.com/bmoe/bmoe/engine/internal/llama"
	"github.com/bmoe/bmoe/engine/rpctest"
)

// Servers that hang are waited for together, each is named, and those that
// answer are counted as if the others had.
func TestServersThatHangCostOneWait(t *testing.T) {
	defer func(d time.Duration) { Timeout = d }(Timeout)
	Timeout = 2 * time.Second
	if err := llama.Init(); err != nil {
		t.Fatal(err)
	}
	srv := rpctest.Start(t)
	hung := []string{rpctest.Hang(t), rpctest.Hang(t), rpctest.Hang(t)}
	list := strings.Join([]string{hung[0], hung[1], srv.At, hung[2]}, ",")
	for range 2 { // the second time the living one is known
		began := time.Now()
		found := Connect(t.Context(), list, 0)
		if took := time.Since(began); took < Timeout || took > 2*Timeout {
			t.Errorf("%s for three servers that are given %s each", took, Timeout)
		}
		for i, at := range map[int]string{0: hung[0], 1: hung[1], 3: hung[2]} {
			if err := found[i].Err; err == nil || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), "did not answer in 2s") {
				t.Errorf("server %d: %v", i, err)
			}
		}
		if _, link, _, err := Find(found, "RPC2"); err != nil || link == nil || link.Server() != srv.At {
			t.Errorf("RPC2: %v", err)
		}
	}
}
