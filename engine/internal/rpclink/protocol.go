package rpclink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Commands of llama.cpp's RPC protocol that are answered, and by how many
// bytes. The rest are sent and never answered.
const (
	cmdAllocBuffer  = 0
	cmdAlignment    = 1
	cmdMaxSize      = 2
	cmdBufferBase   = 3
	cmdFreeBuffer   = 4
	cmdSetTensor    = 6
	cmdSetHash      = 7
	cmdGetTensor    = 8
	cmdCopyTensor   = 9
	cmdDeviceMemory = 11
	cmdAllocSize    = 13
	cmdHello        = 14
	cmdDeviceCount  = 15
)

// The protocol this build's module speaks: it takes the same major and at most
// the same minor version.
const (
	protoMajor, protoMinor = 6, 0
	helloRequest           = 24
	helloAnswer            = 28
)

// answerBytes is the size of a command's answer; false where there is none.
func answerBytes(cmd byte, request []byte) (n int, answered bool) {
	switch cmd {
	case cmdAllocBuffer, cmdDeviceMemory:
		return 16, true
	case cmdAlignment, cmdMaxSize, cmdBufferBase, cmdAllocSize:
		return 8, true
	case cmdSetHash, cmdCopyTensor:
		return 1, true
	case cmdHello:
		return helloAnswer, true
	case cmdDeviceCount:
		return 4, true
	case cmdGetTensor:
		if len(request) < 8 {
			return 0, true
		}
		return int(binary.LittleEndian.Uint64(request[len(request)-8:])), true
	}
	return 0, false
}

// substitute is what a command is answered once its server is lost: something
// llama.cpp goes on with until it can be told to stop.
func (l *Link) substitute(cmd byte, request []byte) []byte {
	n, _ := answerBytes(cmd, request)
	a := make([]byte, n)
	switch cmd {
	case cmdAlignment:
		binary.LittleEndian.PutUint64(a, 128)
	case cmdMaxSize:
		binary.LittleEndian.PutUint64(a, 1<<62)
	case cmdBufferBase:
		binary.LittleEndian.PutUint64(a, 1<<20)
	case cmdSetHash, cmdCopyTensor:
		a[0] = 1
	case cmdHello:
		a[0], a[1] = protoMajor, protoMinor
	case cmdDeviceCount:
		binary.LittleEndian.PutUint32(a, uint32(l.devices))
	}
	return a
}

// message is a command's request: header and, where it is small, its body.
type message struct {
	cmd  byte
	size uint64
	body []byte // whole where size <= wholeBelow, else empty
}

// wholeBelow is the size of a request that is taken in whole before it is
// passed on. Only weights and activations are larger.
const wholeBelow = 64 << 10

func readMessage(r io.Reader, buf []byte) (message, error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return message{}, err
	}
	m := message{cmd: head[0], size: binary.LittleEndian.Uint64(head[1:])}
	if m.size <= wholeBelow {
		m.body = buf[:m.size]
		if _, err := io.ReadFull(r, m.body); err != nil {
			return message{}, err
		}
	}
	return m, nil
}

func (m *message) header() []byte {
	h := make([]byte, 9, 9+len(m.body))
	h[0] = m.cmd
	binary.LittleEndian.PutUint64(h[1:], m.size)
	return append(h, m.body...)
}

// readAnswer reads an answer whole, so that a server lost in its middle leaves
// nothing half said.
func readAnswer(r io.Reader, want int) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	if n := binary.LittleEndian.Uint64(head[:]); n != uint64(want) {
		return nil, fmt.Errorf("it answered %d bytes where %d were due", n, want)
	}
	out := make([]byte, want)
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, err
	}
	return out, nil
}

func writeAnswer(w io.Writer, a []byte) error {
	out := make([]byte, 8, 8+len(a))
	binary.LittleEndian.PutUint64(out, uint64(len(a)))
	_, err := w.Write(append(out, a...))
	return err
}

// greet checks that the other side speaks the protocol and asks how many
// devices it has.
func greet(rw io.ReadWriter) (devices int, err error) {
	ask := func(cmd byte, request []byte) ([]byte, error) {
		m := message{cmd: cmd, size: uint64(len(request)), body: request}
		if _, err := rw.Write(m.header()); err != nil {
			return nil, err
		}
		n, _ := answerBytes(cmd, request)
		return readAnswer(rw, n)
	}
	hello, err := ask(cmdHello, make([]byte, helloRequest))
	if err != nil {
		return 0, fmt.Errorf("it does not speak llama.cpp's RPC protocol: %w", err)
	}
	if hello[0] != protoMajor || hello[1] > protoMinor {
		return 0, fmt.Errorf("it speaks version %d.%d of llama.cpp's RPC protocol, this build %d.%d", hello[0], hello[1], protoMajor, protoMinor)
	}
	count, err := ask(cmdDeviceCount, nil)
	if err != nil {
		return 0, err
	}
	devices = int(binary.LittleEndian.Uint32(count))
	if devices < 1 || devices > 64 {
		return 0, errors.New("it serves no device")
	}
	return devices, nil
}
