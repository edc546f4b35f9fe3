package probes

import (
	"bytes"
	"errors"
	"fmt"
)

// DirectReads tries one read of the file at path past the page cache and
// compares it with an ordinary one. Nil means that it works and tells the truth.
func DirectReads(path string) error {
	d, err := openDrive(path)
	if err != nil {
		return err
	}
	defer d.close()
	return directReads(d)
}

func directReads(d drive) error {
	unit, _ := d.align()
	length, _ := d.size()
	n := min(length, 16*unit)
	if n == 0 {
		return errors.New("the file is empty")
	}
	past, err := firstBytes(d, true, n)
	if err != nil {
		return fmt.Errorf("a direct read is refused: %w", err)
	}
	through, err := firstBytes(d, false, n)
	if err != nil {
		return err
	}
	if !bytes.Equal(past, through) {
		return errors.New("a direct read returns other bytes than an ordinary one")
	}
	return nil
}

func firstBytes(d drive, direct bool, n int64) ([]byte, error) {
	l, err := d.lane(direct, n)
	if err != nil {
		return nil, err
	}
	defer l.close()
	b, err := l.read(0, n)
	return bytes.Clone(b), err
}
