package rpclink

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bmoe/bmoe/engine/rpctest"
)

// fake serves the protocol: each command gets an answer of zeros, except what
// script says.
func fake(t *testing.T, script func(cmd byte, conn net.Conn) bool) string {
	t.Helper()
	return rpctest.Listen(t, func(c net.Conn) {
		buf := make([]byte, wholeBelow)
		for {
			m, err := readMessage(c, buf)
			if err != nil {
				return
			}
			if m.body == nil {
				_, _ = io.CopyN(io.Discard, c, int64(m.size))
			}
			if script != nil && script(m.cmd, c) {
				continue
			}
			n, answered := answerBytes(m.cmd, m.body)
			a := make([]byte, n)
			switch m.cmd {
			case cmdHello:
				a[0], a[1] = protoMajor, protoMinor
			case cmdDeviceCount:
				a[0] = 2
			case cmdAllocBuffer:
				a[0] = 7
				copy(a[8:], m.body[4:])
			case cmdDeviceMemory:
				binary.LittleEndian.PutUint64(a, 1<<40)
				binary.LittleEndian.PutUint64(a[8:], 1<<41)
			}
			if answered && writeAnswer(c, a) != nil {
				return
			}
		}
	})
}

func open(t *testing.T, cfg Config) (*Link, net.Conn) {
	t.Helper()
	l, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return l, c
}

func ask(t *testing.T, c net.Conn, cmd byte, body []byte) []byte {
	t.Helper()
	m := message{cmd: cmd, size: uint64(len(body)), body: body}
	if _, err := c.Write(m.header()); err != nil {
		t.Fatal(err)
	}
	n, _ := answerBytes(cmd, body)
	a, err := readAnswer(c, n)
	if err != nil {
		t.Fatalf("command %d: %v", cmd, err)
	}
	return a
}

func getTensor(n uint64) []byte {
	body := make([]byte, 312)
	binary.LittleEndian.PutUint64(body[304:], n)
	return body
}

func TestLossIsAnsweredAndTold(t *testing.T) {
	scripts := map[string]func(cmd byte, c net.Conn) bool{
		"closes": func(cmd byte, c net.Conn) bool {
			if cmd == cmdGetTensor {
				_ = c.Close()
			}
			return cmd == cmdGetTensor
		},
		"half an answer": func(cmd byte, c net.Conn) bool {
			if cmd == cmdGetTensor {
				_, _ = c.Write([]byte{100, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3})
				_ = c.Close()
			}
			return cmd == cmdGetTensor
		},
		"an answer of another size": func(cmd byte, c net.Conn) bool {
			if cmd == cmdGetTensor {
				_ = writeAnswer(c, []byte("garbage"))
			}
			return cmd == cmdGetTensor
		},
		"hangs": func(cmd byte, _ net.Conn) bool { return cmd == cmdGetTensor },
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			l, c := open(t, Config{Server: fake(t, script), Timeout: 300 * time.Millisecond})
			told := make(chan error, 8)
			l.OnLoss(func(err error) { told <- err })
			if got := ask(t, c, cmdGetTensor, getTensor(100)); len(got) != 100 {
				t.Errorf("%d bytes in the server's place, want 100", len(got))
			}
			var lost *LostError
			err := <-told
			if !errors.As(err, &lost) || !strings.Contains(err.Error(), l.Server()) {
				t.Errorf("told %v", err)
			}
			if late := strings.Contains(err.Error(), "did not answer in time"); late != (name == "hangs") {
				t.Errorf("told %v", err)
			}
			// The client goes on until it is stopped: large requests too.
			big := message{cmd: cmdSetTensor, size: 3 * wholeBelow}
			_, _ = c.Write(big.header())
			_, _ = c.Write(make([]byte, 3*wholeBelow))
			if a := ask(t, c, cmdDeviceCount, nil); a[0] != 2 {
				t.Errorf("%d devices after the loss", a[0])
			}
			if len(told) != 0 {
				t.Error("the loss was told twice")
			}
		})
	}
}

func TestLimitBoundsReportsAndAllocations(t *testing.T) {
	l, c := open(t, Config{Server: fake(t, nil), MaxBytes: 1000})
	alloc := func(n uint64) uint64 {
		body := make([]byte, 12)
		binary.LittleEndian.PutUint64(body[4:], n)
		return binary.LittleEndian.Uint64(ask(t, c, cmdAllocBuffer, body))
	}
	if a := ask(t, c, cmdDeviceMemory, make([]byte, 4)); binary.LittleEndian.Uint64(a) != 1000 || binary.LittleEndian.Uint64(a[8:]) != 1000 {
		t.Errorf("memory %v", a)
	}
	if alloc(1001) != 0 || alloc(700) == 0 || alloc(400) != 0 || l.Held() != 700 {
		t.Errorf("held %d of 1000", l.Held())
	}
	free := message{cmd: cmdFreeBuffer, size: 8, body: []byte{7, 0, 0, 0, 0, 0, 0, 0}}
	_, _ = c.Write(free.header())
	ask(t, c, cmdDeviceCount, nil)
	if l.Held() != 0 {
		t.Errorf("held %d after it was freed", l.Held())
	}
	set := message{cmd: cmdSetTensor, size: 500, body: make([]byte, 500)}
	_, _ = c.Write(set.header())
	ask(t, c, cmdDeviceCount, nil)
	if l.Sent() != 500 {
		t.Errorf("%d bytes counted, 500 sent", l.Sent())
	}
}

func TestOpenRefuses(t *testing.T) {
	mute := func(byte, net.Conn) bool { return true }
	old := func(cmd byte, c net.Conn) bool {
		if cmd == cmdHello {
			_ = writeAnswer(c, append([]byte{1, 0}, make([]byte, helloAnswer-2)...))
		}
		return cmd == cmdHello
	}
	web := func(_ byte, c net.Conn) bool {
		_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		return true
	}
	for want, at := range map[string]string{
		"start ggml-rpc-server there, or name its port": "127.0.0.1:1",
		"refused: start ggml-rpc-server":                "[::1]:1",
		"version 1.0":                                   fake(t, old),
		"does not speak":                                fake(t, web),
		"did not answer in 300ms: it hangs":             fake(t, mute),
	} {
		_, err := Open(t.Context(), Config{Server: at, Timeout: 300 * time.Millisecond})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--rpc "+at) || !strings.Contains(err.Error(), "50052 unless its -p says another") {
			t.Errorf("error %v, want %q in it, the address and its usual port", err, want)
		}
	}
}

func FuzzAnswerBytes(f *testing.F) {
	f.Add(byte(8), getTensor(4))
	f.Fuzz(func(t *testing.T, cmd byte, body []byte) {
		l := &Link{devices: 1}
		if n, _ := answerBytes(cmd, body); n >= 0 && n < 1<<20 {
			if got := len(l.substitute(cmd, body)); got != n {
				t.Errorf("%d bytes where %d are due", got, n)
			}
		}
	})
}
