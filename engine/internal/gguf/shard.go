package gguf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	parser "github.com/gpustack/gguf-parser-go"
)

// shard is one file of a model, parsed.
type shard struct {
	path string
	size int64
	preface
	file *parser.GGUFFile
}

// readShard opens and parses one file.
func readShard(path string) (*shard, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := vet(io.NewSectionReader(f, 0, size), size)
	var te *TensorError
	if errors.As(err, &te) {
		te.Path = path
		return nil, te
	}
	if err != nil {
		return nil, &FileError{path, err}
	}
	g, err := parse(f)
	if err != nil {
		return nil, &FileError{path, err}
	}
	return &shard{path: path, size: size, preface: p, file: g}, nil
}

// openRegular opens a regular file, through symlinks. Anything else is refused
// before and after opening, because opening a FIFO would wait for a writer.
func openRegular(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, &FileError{path, plain(err)}
	}
	if err := regular(info); err != nil {
		return nil, 0, &FileError{path, err}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, &FileError{path, plain(err)}
	}
	info, err = f.Stat()
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		f.Close()
		return nil, 0, &FileError{path, plain(err)}
	}
	return f, info.Size(), nil
}

func regular(info os.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return fmt.Errorf("%w: it is a directory; name the .gguf file in it", ErrNotGGUF)
	}
	return fmt.Errorf("%w: it is not a regular file", ErrNotGGUF)
}

// plain drops the operation and path that os errors repeat.
func plain(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// parse runs the library on an open file. By its descriptor, because given the
// name of a shard the library opens all shards and forgets which is which.
func parse(f *os.File) (g *parser.GGUFFile, err error) {
	defer func() {
		if r := recover(); r != nil {
			g, err = nil, fmt.Errorf("header is not valid: %v", r)
		}
	}()
	g, err = parser.ParseGGUFFile(fmt.Sprintf("/dev/fd/%d", f.Fd()), parser.SkipLargeMetadata(), parser.UseMMap())
	if err != nil && strings.Contains(err.Error(), "tensor data needs") {
		return nil, fmt.Errorf("%w: %w; fetch it again", ErrTruncated, err)
	}
	return g, err
}

var shardName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// shardPaths lists the files of the split model that path is one of.
func shardPaths(path string, count int) ([]string, error) {
	m := shardName.FindStringSubmatch(path)
	if m == nil {
		return nil, fmt.Errorf("it is one of %d shards but is not named like NAME-00001-of-%05d.gguf; rename the shards so", count, count)
	}
	if n, err := strconv.Atoi(m[3]); err != nil || n != count {
		return nil, fmt.Errorf("its name says %s shards, its header says %d", m[3], count)
	}
	out := make([]string, count)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%05d-of-%05d.gguf", m[1], i+1, count)
	}
	return out, nil
}
