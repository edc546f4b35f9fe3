//go:build torture && linux

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A program under torture runs behind a seccomp filter that asks this process
// about every read, write and sync of a file, and about the clock. The answer
// is to go on, to go on later, an error, or another time of day.

const (
	filterEnv  = "BMOE_TORTURE_FILTER" // descriptor of the socket that takes the listener
	notifRecv  = 0xC0502100            // SECCOMP_IOCTL_NOTIF_RECV
	notifSend  = 0xC0182101            // SECCOMP_IOCTL_NOTIF_SEND
	goOn       = 1                     // SECCOMP_USER_NOTIF_FLAG_CONTINUE
	newListen  = 8                     // SECCOMP_FILTER_FLAG_NEW_LISTENER
	retAllow   = 0x7fff0000
	retNotify  = 0x7fc00000
	vdsoRecord = 33 // AT_SYSINFO_EHDR: with it the clock is read without a system call
	ignored    = 1  // AT_IGNORE
)

type notification struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type reply struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// This file's init runs in a child of the rack: it puts the filter on itself,
// hands the listener over and becomes the program.
func init() {
	fd, err := strconv.Atoi(os.Getenv(filterEnv))
	if err != nil {
		return
	}
	runtime.LockOSThread()
	_ = os.Unsetenv(filterEnv)
	listener, err := installFilter()
	if err == nil {
		err = unix.Sendmsg(fd, []byte{0}, unix.UnixRights(listener), nil, 0)
	}
	if err == nil {
		_ = unix.Close(fd)
		_ = unix.Close(listener)
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "torture filter:", err)
	os.Exit(125)
}

func installFilter() (int, error) {
	asked := []uint32{unix.SYS_READ, unix.SYS_WRITE, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FTRUNCATE}
	f := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}}
	n := uint8(len(asked))
	for i, nr := range asked {
		f = append(f, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: n - uint8(i) + 3, K: nr})
	}
	f = append(f,
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 2, K: unix.SYS_CLOCK_GETTIME},
		unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // the first argument
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.CLOCK_REALTIME},
		unix.SockFilter{Code: unix.BPF_RET, K: retAllow},
		unix.SockFilter{Code: unix.BPF_RET, K: retNotify})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, newListen, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// fault decides what becomes of one system call. A nil error lets it happen.
type fault struct {
	decide func(call int32, path string) (wait time.Duration, errno syscall.Errno)
	shift  func() time.Duration // added to the time of day; nil: none
}

// startFaulty starts the program under the faults.
func (r *rack) startFaulty(f *fault, args ...string) (*exec.Cmd, *strings.Builder) {
	r.t.Helper()
	runtime.LockOSThread() // tracing is a thread's affair
	defer runtime.UnlockOSThread()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "listener")
	defer theirs.Close()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	var log strings.Builder
	cmd := exec.Command(self, append(append([]string{r.program}, args...), "--db", r.db)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+r.temp, filterEnv+"=3")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: f.shift != nil}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	_ = theirs.Close()
	if f.shift != nil {
		if err := takeVDSO(cmd.Process.Pid); err != nil {
			r.t.Fatal(err)
		}
	}
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(pair[0], make([]byte, 1), oob, 0)
	if err != nil || n == 0 {
		r.t.Fatalf("no listener came: %v", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil {
		r.t.Fatal(err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		r.t.Fatal(err)
	}
	go r.answer(fds[0], f)
	return cmd, &log
}

// takeVDSO follows a traced process to its second exec, makes the program find
// no vDSO there, and lets go of it.
func takeVDSO(pid int) error {
	for execs := 0; ; {
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
			return err
		}
		sig := 0
		switch {
		case !ws.Stopped():
			return fmt.Errorf("it ended under tracing: %v", ws)
		case ws.StopSignal() != syscall.SIGTRAP:
			sig = int(ws.StopSignal())
		default:
			execs++
		}
		if execs == 2 {
			if err := hideVDSO(pid); err != nil {
				return err
			}
			return syscall.PtraceDetach(pid)
		}
		if err := syscall.PtraceCont(pid, sig); err != nil {
			return err
		}
	}
}

// hideVDSO rewrites the record in the vector behind arguments and environment.
func hideVDSO(pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	at, err := strconv.ParseInt(strings.Fields(rest)[25], 10, 64)
	if err != nil {
		return err
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	word := func(at int64) uint64 {
		var b [8]byte
		_, err = mem.ReadAt(b[:], at)
		return binary.NativeEndian.Uint64(b[:])
	}
	at += 8 * int64(word(at)+2) // argc, the arguments and their nil
	for word(at) != 0 && err == nil {
		at += 8
	}
	for at += 8; err == nil; at += 16 {
		switch word(at) {
		case 0:
			return fmt.Errorf("no vDSO in the auxiliary vector")
		case vdsoRecord:
			_, err = mem.WriteAt(binary.NativeEndian.AppendUint64(nil, ignored), at)
			return err
		}
	}
	return err
}

// answer serves one listener until nobody is left behind its filter.
func (r *rack) answer(fd int, f *fault) {
	defer unix.Close(fd)
	for {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); err == unix.EINTR {
			continue
		} else if err != nil || poll[0].Revents&unix.POLLIN == 0 {
			return
		}
		var n notification
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), notifRecv, uintptr(unsafe.Pointer(&n))); errno != 0 {
			continue // it was killed, or a signal took the call away, meanwhile
		}
		out := reply{id: n.id, flags: goOn}
		send := func() { _, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), notifSend, uintptr(unsafe.Pointer(&out))) }
		if n.nr == unix.SYS_CLOCK_GETTIME {
			if f.shift != nil && setTime(&n, time.Now().Add(f.shift())) == nil {
				out.flags = 0
			}
			send()
			continue
		}
		path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[0])))
		if f.decide == nil || !strings.HasPrefix(path, r.dir+"/") {
			send()
			continue
		}
		wait, errno := f.decide(n.nr, path)
		if errno != 0 {
			out.flags, out.errno = 0, -int32(errno)
		}
		if wait == 0 {
			send()
			continue
		}
		go func() { time.Sleep(wait); send() }()
	}
}

// setTime writes a time of day where the call wants it.
func setTime(n *notification, at time.Time) error {
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", n.pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	b := binary.NativeEndian.AppendUint64(nil, uint64(at.Unix()))
	_, err = mem.WriteAt(binary.NativeEndian.AppendUint64(b, uint64(at.Nanosecond())), int64(n.args[1]))
	return err
}
