package backends

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/engine/rpctest"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
)

// between forwards to a real server and changes answers: f is told the command
// and given the answer, and ends the connection with false.
func between(t *testing.T, server string, f func(cmd byte, answer []byte) bool) string {
	return rpctest.Listen(t, func(c net.Conn) {
		s, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer s.Close()
		head := make([]byte, 9)
		for {
			if _, err := io.ReadFull(c, head); err != nil {
				return
			}
			body := make([]byte, binary.LittleEndian.Uint64(head[1:]))
			if _, err := io.ReadFull(c, body); err != nil {
				return
			}
			_, _ = s.Write(append(head[:9:9], body...))
			if silent(head[0]) {
				continue
			}
			var size [8]byte
			if _, err := io.ReadFull(s, size[:]); err != nil {
				return
			}
			answer := make([]byte, binary.LittleEndian.Uint64(size[:]))
			if _, err := io.ReadFull(s, answer); err != nil {
				return
			}
			if !f(head[0], answer) {
				return
			}
			_, _ = c.Write(append(size[:], answer...))
		}
	})
}

// stops greets as a server does and answers nothing after.
func stops(t *testing.T, server string) string {
	return between(t, server, func(cmd byte, _ []byte) bool {
		if cmd != hello && cmd != deviceCount {
			<-t.Context().Done()
		}
		return true
	})
}

// Commands of llama.cpp's RPC protocol.
const (
	deviceCount = 15
	bufferBase  = 3
	getTensor   = 8
	hello       = 14
)

// silent commands are not answered: free and clear a buffer are, a tensor that
// is set and a graph that is computed are not.
func silent(cmd byte) bool { return !answers[cmd] }

var answers = map[byte]bool{0: true, 1: true, 2: true, 3: true, 7: true, 8: true, 9: true, 11: true, 13: true, 14: true, 15: true}

// Whatever a server does, its device is unusable with a reason, and the probe
// of the others goes on.
func TestHostileServers(t *testing.T) {
	m := tiny(t, nil)
	real := rpctest.Start(t).At
	tests := []struct {
		name, at, want string
		limit          time.Duration
	}{
		{"nothing listens", rpctest.FreeAddr(t), "start ggml-rpc-server there", time.Minute},
		{"a web server", rpctest.Listen(t, func(c net.Conn) {
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
		}), "does not speak llama.cpp's RPC protocol", time.Minute},
		{"another version", between(t, real, func(cmd byte, a []byte) bool {
			if cmd == hello {
				a[0]++
			}
			return true
		}), "version 7.0 of llama.cpp's RPC protocol, this build 6.0", time.Minute},
		{"closes in the middle", between(t, real, func(cmd byte, _ []byte) bool { return cmd != getTensor }), "was lost", time.Minute},
		{"accepts and says nothing", rpctest.Hang(t), "did not answer in 3s: it hangs", 3 * time.Second},
		{"greets and says nothing more", stops(t, rpctest.Start(t).At), "its probe did not answer in 3s", 3 * time.Second},
		{"ends the probe's process", between(t, real, func(cmd byte, a []byte) bool {
			if cmd == bufferBase {
				clear(a)
			}
			return true
		}), "(signal 6", time.Minute},
		{"as it should be", between(t, real, func(byte, []byte) bool { return true }), "", time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Model, cfg.CtxSize, cfg.RPC, cfg.RPCMB = m.Path, 1024, tt.at, 64
			e := New(child(t, "device", m.Path, tt.limit))
			e.Greet = tt.limit
			d := e.Devices(t.Context(), m, cfg)
			if len(d) != 1 {
				t.Fatalf("%d devices", len(d))
			}
			if tt.want == "" {
				if planner.Ask(d[0].Usable) != planner.Yes {
					t.Errorf("usable %+v", d[0].Usable)
				}
				return
			}
			if planner.Ask(d[0].Usable) != planner.No || !strings.Contains(d[0].Usable.Reason, tt.want) {
				t.Errorf("usable %+v, want %q", d[0].Usable, tt.want)
			}
			t.Log(d[0].Usable.Reason)
		})
	}
}

// Without a child the same facts come, and a server that is not there does not
// end the process.
func TestDevicesAskedInThisProcess(t *testing.T) {
	m := tiny(t, nil)
	cfg := config.Default()
	cfg.Model, cfg.CtxSize, cfg.Threads, cfg.RPC, cfg.RPCMB = m.Path, 1024, 1, rpctest.Start(t).At+","+rpctest.FreeAddr(t)+","+rpctest.Start(t).At, 64
	d := New(nil).Devices(t.Context(), m, cfg)
	if len(d) != 3 {
		t.Fatalf("%d devices", len(d))
	}
	for i, want := range []planner.Tri{planner.Yes, planner.No, planner.Yes} {
		if planner.Ask(d[i].Usable) != want || d[i].Name != device.RPCName(i) {
			t.Errorf("%s: usable %+v, want %v", d[i].Name, d[i].Usable, want)
		}
		if want == planner.Yes && (len(d[i].Compute.Value) == 0 || !d[i].Wide.OK()) {
			t.Errorf("%s: compute %+v, wide %+v", d[i].Name, d[i].Compute, d[i].Wide)
		}
	}
}

// A child does not outlive its parent, be its device one that hangs.
func TestChildOfAHangingDeviceEndsWithItsParent(t *testing.T) {
	m := tiny(t, nil)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hung := make(chan bool, 1)
	at := between(t, rpctest.Start(t).At, func(cmd byte, _ []byte) bool {
		if cmd != hello && cmd != deviceCount {
			hung <- true
			<-t.Context().Done()
		}
		return true
	})
	cfg := config.Default()
	cfg.Model, cfg.CtxSize = m.Path, 1024
	cmd := exec.Command(exe, args(cfg, "RPC0", at)...)
	cmd.Env = append(os.Environ(), modeEnv+"=device", modelEnv+"="+m.Path)
	parent, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-hung
	_ = parent.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it ended as if it had answered")
		}
	case <-time.After(20 * time.Second):
		t.Error("it is still there")
		_ = cmd.Process.Kill()
	}
}
