package device

import (
	"context"
	"time"

	"github.com/bmoe/bmoe/engine/internal/llama"
	"github.com/bmoe/bmoe/engine/internal/rpcdev"
	"github.com/bmoe/bmoe/engine/internal/rpclink"
)

// RPC is the backend of devices that llama.cpp's RPC servers lend.
const RPC = "RPC"

// GreetTime is how long a run waits for an RPC server to say that it is one.
const GreetTime = rpclink.GreetTime

// RPCName is what the n-th device of a --rpc list is called.
func RPCName(n int) string { return rpcdev.Name(n) }

// Greet asks RPC servers whether they answer, all at once, and says for each
// why not. It touches no driver.
func Greet(ctx context.Context, servers []string, limit time.Duration) []error {
	return rpcdev.Greet(ctx, servers, limit)
}

// Remote is a device of an RPC server.
type Remote struct {
	Name   string // what this process has registered it as
	Beside int    // devices of the list it was found in, itself included
	link   *rpclink.Link
}

// Server is its server's address.
func (r *Remote) Server() string { return r.link.Server() }

// Lost is how its server was lost, or nil.
func (r *Remote) Lost() error { return r.link.Err() }

// FindRemote connects to the servers of a --rpc list, each lending at most
// maxMB MiB (0: what it reports), and finds a device by its name in that list,
// RPC0 and on. It is nil where the list has no such device.
func FindRemote(ctx context.Context, list string, maxMB int, name string) (*Remote, error) {
	servers := rpcdev.Connect(ctx, list, int64(maxMB)<<20)
	dev, link, _, err := rpcdev.Find(servers, name)
	if err != nil || link == nil {
		return nil, err
	}
	info, err := dev.Info()
	if err != nil {
		return nil, err
	}
	n := 0
	for _, s := range servers {
		n += max(1, len(s.Devices))
	}
	return &Remote{info.Name, n, link}, nil
}

// DieBySignal has a fault of a driver end this process by its signal: for one
// that is there to be lost.
func DieBySignal() error { return llama.DieBySignal() }

// Hold takes and fills so many bytes of a device's memory until release is
// called.
func Hold(name string, bytes int64) (release func(), err error) {
	d, err := llama.FindDevice(name)
	if err != nil {
		return nil, err
	}
	return d.Hold(bytes)
}
