package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/bmoe/bmoe/engine/internal/llama"
	"github.com/bmoe/bmoe/engine/internal/rpclink"
)

// server is one RPC server that this process has registered. llama.cpp keeps a
// registration for the process's life, and so do we.
type server struct {
	link    *rpclink.Link
	devices []llama.Device
}

var (
	serversMu sync.Mutex
	servers   = map[string]*server{}
)

// rpcTimeout is how long a server may take to answer before it counts as lost.
// Tests shorten it.
var rpcTimeout = 2 * time.Minute

// connect registers the servers of a --rpc list, in its order, each bounded to
// maxBytes (0: as much as it reports).
func connect(ctx context.Context, list string, maxBytes int64) ([]*server, error) {
	serversMu.Lock()
	defer serversMu.Unlock()
	var out []*server
	for _, at := range endpoints(list) {
		s, err := connectOne(ctx, at, maxBytes)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// endpoints splits a --rpc list.
func endpoints(list string) []string {
	var out []string
	for _, at := range strings.Split(list, ",") {
		if at = strings.TrimSpace(at); at != "" {
			out = append(out, at)
		}
	}
	return out
}

func connectOne(ctx context.Context, at string, maxBytes int64) (*server, error) {
	if s := servers[at]; s != nil {
		s.link.Limit(maxBytes)
		if s.link.Err() != nil || !s.link.Busy() {
			return s, s.link.Revive(ctx)
		}
		return s, nil
	}
	link, err := rpclink.Open(ctx, rpclink.Config{Server: at, Timeout: rpcTimeout, MaxBytes: maxBytes})
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
	servers[at] = &server{link, devs}
	return servers[at], nil
}
