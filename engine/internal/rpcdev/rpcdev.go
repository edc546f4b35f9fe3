// Package rpcdev registers RPC servers as devices of this process, each behind
// a link that survives its loss.
package rpcdev

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/bmoe/bmoe/engine/internal/llama"
	"github.com/bmoe/bmoe/engine/internal/rpclink"
	"github.com/bmoe/bmoe/planner/config"
)

// Server is one registered RPC server. llama.cpp keeps a registration for the
// process's life, and so does this package.
type Server struct {
	Link    *rpclink.Link
	Devices []llama.Device
	Err     error // nothing answers there; it then counts as one device
}

// Timeout is how long a server may take to answer before it counts as lost. It
// is read when a server is first connected.
var Timeout = 2 * time.Minute

var (
	mu      sync.Mutex
	servers = map[string]*Server{}
)

// Connect registers the servers of a --rpc list, in its order, each bounded to
// maxBytes (0: as much as it reports). A server that does not answer is in the
// list with its error.
func Connect(ctx context.Context, list string, maxBytes int64) []*Server {
	mu.Lock()
	defer mu.Unlock()
	ats := config.Servers(list)
	links, errs := reach(ctx, ats, maxBytes)
	out := make([]*Server, len(ats))
	for i, at := range ats {
		err := errs[i]
		if err == nil && servers[at] == nil {
			err = register(at, links[i])
		}
		if out[i] = servers[at]; err != nil {
			out[i] = &Server{Err: err}
		}
	}
	return out
}

// reach greets all servers at once: one that hangs is waited for beside the
// others, not before them. A link is nil where there is one already.
func reach(ctx context.Context, ats []string, maxBytes int64) (links []*rpclink.Link, errs []error) {
	links, errs = make([]*rpclink.Link, len(ats)), make([]error, len(ats))
	var all sync.WaitGroup
	for i, at := range ats {
		all.Go(func() {
			s := servers[at]
			if s == nil {
				links[i], errs[i] = rpclink.Open(ctx, rpclink.Config{Server: at, Timeout: Timeout, MaxBytes: maxBytes})
				return
			}
			s.Link.Limit(maxBytes)
			if s.Link.Err() != nil || !s.Link.Busy() {
				errs[i] = s.Link.Revive(ctx)
			}
		})
	}
	all.Wait()
	return links, errs
}

// register makes the devices behind a link known to llama.cpp. That belongs to
// the first contact: a server that hangs in it is not waited for as one at work.
func register(at string, link *rpclink.Link) error {
	link.Hurry(rpclink.GreetTime)
	defer link.Hurry(0)
	devs, err := llama.RegisterRPC(link.Addr())
	if err == nil {
		err = link.Err()
	}
	if err != nil {
		_ = link.Close()
		return fmt.Errorf("--rpc %s: %w", at, err)
	}
	servers[at] = &Server{Link: link, Devices: devs}
	return nil
}

// Greet asks each server of a --rpc list whether it answers, all at once, and
// waits for none longer than limit.
func Greet(ctx context.Context, list []string, limit time.Duration) []error {
	out := make([]error, len(list))
	var all sync.WaitGroup
	for i, at := range list {
		all.Go(func() { _, out[i] = rpclink.Greet(ctx, at, min(limit, rpclink.GreetTime)) })
	}
	all.Wait()
	return out
}

// Known is the registered server at an address, or nil.
func Known(at string) *Server {
	mu.Lock()
	defer mu.Unlock()
	return servers[at]
}

// giveUp is how long a server is waited for once its answer is not wanted.
const giveUp = 2 * time.Second

// Hurry says whether what the servers compute is no longer wanted, so that one
// that hangs is not waited for to the end of its time-out.
func Hurry(on bool) {
	mu.Lock()
	defer mu.Unlock()
	for _, s := range servers {
		if on {
			s.Link.Hurry(giveUp)
		} else {
			s.Link.Hurry(0)
		}
	}
}

// Find looks a device up by its name in a list of servers; known are the names
// there are.
func Find(list []*Server, name string) (dev llama.Device, link *rpclink.Link, known []string, err error) {
	for _, s := range list {
		if s.Err != nil {
			if Name(len(known)) == name {
				return llama.Device{}, nil, known, s.Err
			}
			known = append(known, Name(len(known)))
			continue
		}
		for _, d := range s.Devices {
			if Name(len(known)) == name {
				return d, s.Link, known, nil
			}
			known = append(known, Name(len(known)))
		}
	}
	return llama.Device{}, nil, known, nil
}

// Name is what the n-th device of a --rpc list is called, whatever else this
// process has registered.
func Name(n int) string { return fmt.Sprintf("RPC%d", n) }
