// Package rpctest starts llama.cpp's RPC server, and stands in for one, in
// tests. No program imports it.
package rpctest

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// Server is a llama.cpp RPC server of one test.
type Server struct {
	At  string // host:port
	cmd *exec.Cmd
}

// Start starts a server on a free loopback port, one thread, and ends it with
// the test.
func Start(t testing.TB) *Server {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	bin := filepath.Join(filepath.Dir(file), "..", "..", "bin", "ggml-rpc-server")
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("%v: type `make rpc`", err)
	}
	s := &Server{At: FreeAddr(t)}
	_, port, _ := net.SplitHostPort(s.At)
	s.cmd = exec.Command(bin, "-H", "127.0.0.1", "-p", port, "-t", "1")
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	s.await(t)
	return s
}

func (s *Server) await(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", s.At, time.Second)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the RPC server does not answer: %v", err)
		}
	}
}

// Kill ends the server at once. It may be called twice.
func (s *Server) Kill() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// Signal sends the server a signal: a stopped one listens and does not answer.
func (s *Server) Signal(sig os.Signal) error { return s.cmd.Process.Signal(sig) }

// FreeAddr is a loopback address that nothing listens on.
func FreeAddr(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// Listen serves each connection with f, closes it after, and returns the
// address, which is on the loopback of IPv4.
func Listen(t testing.TB, f func(net.Conn)) string { return ListenOn(t, "127.0.0.1:0", f) }

// Hang listens, takes connections and never says anything, as a stopped server
// does.
func Hang(t testing.TB) string {
	return Listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
}

// Relay listens on a loopback address of IPv6 and passes on to a server, which
// listens on IPv4 alone.
func Relay(t testing.TB, server string) string {
	return ListenOn(t, "[::1]:0", func(c net.Conn) {
		s, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer s.Close()
		go func() { _, _ = io.Copy(c, s) }()
		_, _ = io.Copy(s, c)
	})
}

// ListenOn is [Listen] on an address.
func ListenOn(t testing.TB, at string, f func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(c)
			}()
		}
	}()
	return ln.Addr().String()
}
