package rpclink

import (
	"encoding/binary"
	"io"
	"net"
	"time"
)

// pipe carries one connection's commands. Once dead it answers them itself.
type pipe struct {
	l      *Link
	client net.Conn
	server net.Conn
	dead   bool
	buf    []byte
	owned  map[uint64]bool
}

// step carries one command; an error is the client's, whose going ends it.
func (p *pipe) step() error {
	m, err := readMessage(p.client, p.buf)
	if err != nil {
		return err
	}
	if m.cmd == cmdHello && len(m.body) == helloRequest {
		clear(m.body) // no transport but this one
	}
	if !p.dead {
		err = p.forward(&m)
	} else if m.body == nil {
		_, err = io.CopyN(io.Discard, p.client, int64(m.size))
	}
	if err != nil {
		return err
	}
	want, answered := answerBytes(m.cmd, m.body)
	if !answered {
		p.note(&m)
		return nil
	}
	return writeAnswer(p.client, p.answer(&m, want))
}

// forward passes a request on. Only the client's errors are returned.
func (p *pipe) forward(m *message) error {
	if m.cmd == cmdAllocBuffer && len(m.body) == 12 && !p.l.grant(int64(binary.LittleEndian.Uint64(m.body[4:]))) {
		return nil // refused in answer
	}
	_ = p.server.SetWriteDeadline(time.Now().Add(p.l.patience()))
	if _, err := p.server.Write(m.header()); err != nil {
		p.lose(err)
	}
	if m.body == nil {
		return p.stream(int64(m.size))
	}
	if m.cmd == cmdSetTensor {
		p.l.sent.Add(int64(m.size))
	}
	return nil
}

// stream passes a large body on, and drains it once the server is gone.
func (p *pipe) stream(left int64) error {
	for left > 0 {
		part := p.buf[:min(left, int64(len(p.buf)))]
		if _, err := io.ReadFull(p.client, part); err != nil {
			return err
		}
		left -= int64(len(part))
		if p.dead {
			continue
		}
		_ = p.server.SetWriteDeadline(time.Now().Add(p.l.patience()))
		if _, err := p.server.Write(part); err != nil {
			p.lose(err)
			continue
		}
		p.l.sent.Add(int64(len(part)))
	}
	return nil
}

// answer is the server's, or one in its place.
func (p *pipe) answer(m *message, want int) []byte {
	if p.dead {
		return p.l.substitute(m.cmd, m.body)
	}
	size := int64(0)
	if m.cmd == cmdAllocBuffer && len(m.body) == 12 {
		if size = int64(binary.LittleEndian.Uint64(m.body[4:])); !p.l.grant(size) {
			return make([]byte, want)
		}
	}
	_ = p.server.SetReadDeadline(time.Now().Add(p.l.patience()))
	a, err := readAnswer(p.server, want)
	if err != nil {
		p.lose(err)
		return p.l.substitute(m.cmd, m.body)
	}
	switch m.cmd {
	case cmdDeviceMemory:
		p.l.capped(a)
	case cmdAllocBuffer:
		p.allocated(binary.LittleEndian.Uint64(a), int64(binary.LittleEndian.Uint64(a[8:])))
	}
	return a
}

func (p *pipe) allocated(ptr uint64, size int64) {
	if ptr == 0 {
		return
	}
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	if p.owned == nil {
		p.owned = map[uint64]bool{}
	}
	p.owned[ptr] = true
	p.l.sizes[ptr] = size
	p.l.held.Add(size)
}

// note follows the buffers that are given back.
func (p *pipe) note(m *message) {
	if m.cmd != cmdFreeBuffer || len(m.body) != 8 {
		return
	}
	ptr := binary.LittleEndian.Uint64(m.body)
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	p.l.held.Add(-p.l.sizes[ptr])
	delete(p.l.sizes, ptr)
	delete(p.owned, ptr)
}

func (p *pipe) lose(err error) {
	p.dead = true
	p.l.lose(err)
}
