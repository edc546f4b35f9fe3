package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// mostText bounds a prompt and a configuration: a device that never ends must
// not fill the memory.
const mostText = 64 << 20

// pipeWait is how long a named pipe may have no writer.
const pipeWait = 5 * time.Second

// await is f's result, or the interrupt that came first: a read that does not
// return must not keep Ctrl-C from ending the program.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// openInput opens a file to read. Opening does not wait for the writer of a
// named pipe; reading does, for pipeWait.
func openInput(path string) (io.ReadCloser, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		_ = f.Close()
		return nil, err
	case info.IsDir():
		_ = f.Close()
		return nil, &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	case info.Mode()&fs.ModeNamedPipe != 0:
		return &pipe{File: f, until: time.Now().Add(pipeWait)}, nil
	}
	return f, nil
}

// pipe is a named pipe that may not have its writer yet.
type pipe struct {
	*os.File
	until time.Time
	began bool
}

func (p *pipe) Read(b []byte) (int, error) {
	for {
		n, err := p.File.Read(b)
		p.began = p.began || n > 0
		switch {
		case !errors.Is(err, io.EOF) || p.began:
			return n, err
		case time.Now().After(p.until):
			return 0, fmt.Errorf("%s: a named pipe into which nobody writes", p.Name())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// readText reads all of a file, or of standard input where path is "-".
func readText(ctx context.Context, stdin io.Reader, path string) ([]byte, error) {
	return await(ctx, func() ([]byte, error) {
		in := stdin
		if path != "-" {
			f, err := openInput(path)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			in = f
		}
		raw, err := io.ReadAll(io.LimitReader(in, mostText+1))
		if err == nil && len(raw) > mostText {
			err = fmt.Errorf("%s: more than %d MiB", path, mostText>>20)
		}
		return raw, err
	})
}

// promptFile is the text of -f.
func promptFile(ctx context.Context, stdin io.Reader, path string) (string, error) {
	raw, err := readText(ctx, stdin, path)
	if err != nil {
		return "", refused(ctx, fmt.Errorf("-f: %w", err), "give a readable text file, or - for standard input")
	}
	return string(raw), nil
}

// refused is a usage error, unless an interrupt was what kept it from being read.
func refused(ctx context.Context, err error, hint string) error {
	if ctx.Err() != nil {
		return interrupted(ctx, err)
	}
	return usageError{err, hint}
}

// openOutput makes a file of results, readable by its owner only. A pipe that
// nobody reads is an error, not something to wait for.
func openOutput(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
}
