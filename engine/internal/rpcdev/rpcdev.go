// Package rpcdev registers RPC servers as devices of this process, each behind
// a link that survives its loss.
package rpcdev

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/bmoe/bmoe/engine/internal/llama"
	"github.com/bmoe/bmoe/engine/internal/rpclink"
)

// Server is one registered RPC server. llama.cpp keeps a registration for the
// process's life, and so does this package.
type Server struct {
	Link    *rpclink.Link
	Devices []llama.Device
}

// Timeout is how long a server may take to answer before it counts as lost. It
// is read when a server is first connected.
var Timeout = 2 * time.Minute

var (
	mu      sync.Mutex
	servers = map[string]*Server{}
)

// Connect registers the servers of a --rpc list, in its order, each bounded to
// maxBytes (0: as much as it reports).
func Connect(ctx context.Context, list string, maxBytes int64) ([]*Server, error) {
	mu.Lock()
	defer mu.Unlock()
	var out []*Server
	for at := range strings.SplitSeq(list, ",") {
		if at = strings.TrimSpace(at); at == "" {
			continue
		}
		s, err := connect(ctx, at, maxBytes)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// Known is the registered server at an address, or nil.
func Known(at string) *Server {
	mu.Lock()
	defer mu.Unlock()
	return servers[at]
}

func connect(ctx context.Context, at string, maxBytes int64) (*Server, error) {
	if s := servers[at]; s != nil {
		s.Link.Limit(maxBytes)
		if s.Link.Err() != nil || !s.Link.Busy() {
			return s, s.Link.Revive(ctx)
		}
		return s, nil
	}
	link, err := rpclink.Open(ctx, rpclink.Config{Server: at, Timeout: Timeout, MaxBytes: maxBytes})
	if err != nil {
		return nil, err
	}
	devs, err := llama.RegisterRPC(link.Addr())
	if err == nil {
		err = link.Err()
	}
	if err != nil {
		_ = link.Close()
		return nil, fmt.Errorf("--rpc %s: %w", at, err)
	}
	servers[at] = &Server{link, devs}
	return servers[at], nil
}

// Name is what the n-th device of a --rpc list is called, whatever else this
// process has registered.
func Name(n int) string { return fmt.Sprintf("RPC%d", n) }
