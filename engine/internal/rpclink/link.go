// Package rpclink stands between llama.cpp's RPC client and its servers. The
// client ends the whole process when a server is lost; a Link sees the loss
// first, answers in the server's place until the computation can be stopped,
// and says what happened. It also bounds what is allocated on a server and
// counts the bytes sent to it.
package rpclink

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Config says how a server is reached.
type Config struct {
	Server  string        // host:port
	Timeout time.Duration // an answer that takes longer is a loss; 0: 2 minutes
	// MaxBytes bounds what is allocated on the server's devices together, and
	// what they report; 0: what the server reports.
	MaxBytes int64
}

// Link is one server, reached through a local address.
type Link struct {
	cfg     Config
	ln      net.Listener
	devices int
	max     atomic.Int64
	sent    atomic.Int64
	held    atomic.Int64
	mu      sync.Mutex
	sizes   map[uint64]int64 // buffers on the server
	lost    error
	onLoss  func(error)
	conns   map[net.Conn]bool // clients
	servers map[net.Conn]bool // their connections to the server
	hurry   time.Duration     // instead of the time-out, unless it is 0
	closed  bool
}

const defaultTimeout = 2 * time.Minute

// LostError says that a server was lost while it was in use.
type LostError struct {
	Server string
	Err    error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the RPC server %s was lost: %v (is ggml-rpc-server still running there?)", e.Server, e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

// Open checks that a server answers and listens for the client in its place.
func Open(ctx context.Context, cfg Config) (*Link, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	l := &Link{cfg: cfg, conns: map[net.Conn]bool{}, servers: map[net.Conn]bool{}, sizes: map[uint64]int64{}}
	l.max.Store(cfg.MaxBytes)
	var err error
	if l.devices, err = Greet(ctx, cfg.Server, l.greetTime()); err != nil {
		return nil, err
	}
	if l.ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	go l.accept()
	return l, nil
}

const portHint = "50052 unless its -p says another"

// GreetTime is how long a server may take to be reached and to say what it is.
const GreetTime = 10 * time.Second

func (l *Link) greetTime() time.Duration { return min(l.patience(), GreetTime) }

func dial(ctx context.Context, server string, limit time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: limit}
	return d.DialContext(ctx, "tcp", server)
}

// Greet reaches a server and asks how many devices it has.
func Greet(ctx context.Context, server string, limit time.Duration) (devices int, err error) {
	conn, err := dial(ctx, server, limit)
	if err != nil {
		return 0, fmt.Errorf("--rpc %s: %w: start ggml-rpc-server there, or name its port (%s)", server, err, portHint)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(limit))
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	devices, err = greet(conn)
	switch {
	case err == nil:
		return devices, nil
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, fmt.Errorf("--rpc %s: it takes connections and did not answer in %s: it hangs, is no ggml-rpc-server (its port is %s), or serves another program, of which it takes one at a time", server, limit, portHint)
	}
	return 0, fmt.Errorf("--rpc %s: %w; is that ggml-rpc-server's port (%s), and the server this build's release?", server, err, portHint)
}

// patience is how long an answer is waited for now.
func (l *Link) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hurry > 0 {
		return l.hurry
	}
	return l.cfg.Timeout
}

// Hurry has answers waited for so long at most, those under way included: what
// they are for is no longer wanted. 0 goes back to the time-out.
func (l *Link) Hurry(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hurry = d
	for c := range l.servers {
		if d > 0 {
			_ = c.SetDeadline(time.Now().Add(d))
		}
	}
}

// Addr is the local address the client is to be given.
func (l *Link) Addr() string { return l.ln.Addr().String() }

// Server is the server's own address.
func (l *Link) Server() string { return l.cfg.Server }

// Sent is how many bytes of tensors went to the server.
func (l *Link) Sent() int64 { return l.sent.Load() }

// Held is how many bytes are allocated on the server.
func (l *Link) Held() int64 { return l.held.Load() }

// Limit bounds what is allocated from now on; 0 lifts the bound.
func (l *Link) Limit(bytes int64) { l.max.Store(bytes) }

// OnLoss sets what is called, from another goroutine, when the server is lost;
// nil for nothing.
func (l *Link) OnLoss(f func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onLoss = f
}

// Err is how the server was lost, or nil.
func (l *Link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Busy reports whether a client is connected.
func (l *Link) Busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns) > 0
}

// Revive forgets a loss if the server answers again.
func (l *Link) Revive(ctx context.Context) error {
	if _, err := Greet(ctx, l.cfg.Server, l.greetTime()); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = nil
	return nil
}

// Close ends the listening. A client that is still connected loses its server.
func (l *Link) Close() error {
	l.mu.Lock()
	l.closed = true
	for c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	return l.ln.Close()
}

func (l *Link) accept() {
	for {
		client, err := l.ln.Accept()
		if err != nil {
			return
		}
		go l.serve(client)
	}
}

func (l *Link) lose(err error) {
	l.mu.Lock()
	first := l.lost == nil && !l.closed
	if first {
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
			err = errors.New("it closed the connection")
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = errors.New("it did not answer in time")
		}
		l.lost = &LostError{l.cfg.Server, err}
	}
	f, lost := l.onLoss, l.lost
	l.mu.Unlock()
	if first && f != nil {
		f(lost)
	}
}

// keep adds a connection to one of the link's lists, until forget is called.
func (l *Link) keep(list map[net.Conn]bool, c net.Conn) (forget func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list[c] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(list, c)
	}
}

// serve passes one client's commands on until it goes.
func (l *Link) serve(client net.Conn) {
	defer l.keep(l.conns, client)()
	defer client.Close()
	server, err := dial(context.Background(), l.cfg.Server, l.greetTime())
	if err != nil {
		l.lose(err)
	} else {
		defer server.Close()
		defer l.keep(l.servers, server)()
	}
	p := &pipe{l: l, client: client, server: server, dead: err != nil, buf: make([]byte, wholeBelow)}
	for p.step() == nil {
	}
	l.release(p.owned)
}

// release forgets the buffers of a connection that ended: the server frees
// them then.
func (l *Link) release(owned map[uint64]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ptr := range owned {
		l.held.Add(-l.sizes[ptr])
		delete(l.sizes, ptr)
	}
}

// grant reports whether an allocation stays inside the bound.
func (l *Link) grant(bytes int64) bool {
	most := l.max.Load()
	return most == 0 || l.held.Load()+bytes <= most
}

// capped bounds a device's report of its memory.
func (l *Link) capped(a []byte) {
	most := l.max.Load()
	if most == 0 || len(a) != 16 {
		return
	}
	free := max(0, most-l.held.Load())
	for i, bound := range []int64{free, most} {
		at := a[8*i : 8*i+8]
		if binary.LittleEndian.Uint64(at) > uint64(bound) {
			binary.LittleEndian.PutUint64(at, uint64(bound))
		}
	}
}
