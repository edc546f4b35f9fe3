package main

import "io"

// outlet is standard output that remembers the first write that failed: output
// that nobody got is no success, whoever printed it.
type outlet struct {
	io.Writer
	err error
}

func (o *outlet) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// Fd is the descriptor below, by which a terminal is known as one.
func (o *outlet) Fd() uintptr {
	if f, ok := o.Writer.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}
