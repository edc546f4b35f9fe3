package results

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// appID marks our files in SQLite's header: "bmoe".
const appID = 0x626d6f65

const (
	magic      = "SQLite format 3\x00"
	headerSize = 100
)

// inspect looks at a file before SQLite does, so that nothing of a file that is
// not ours is ever touched. It reports whether there is a ledger: a missing or
// empty file is none, and fine.
//
// Another program may be making the file, or folding its log into it, while we
// look: what seems cut short is looked at again before it is said to be.
func inspect(path string) (exists bool, err error) {
	for try := 0; ; try++ {
		exists, err = look(path)
		if try == 15 || !errors.Is(err, ErrTruncated) {
			return exists, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func look(path string) (exists bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() { // a pipe would not even open
		return false, &Fault{Path: path, Kind: ErrNotDatabase, Detail: "not a regular file", Hint: "give the path of a file"}
	}
	if info.Size() == 0 {
		return false, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, headerSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	if info, err = f.Stat(); err != nil { // it may have grown since
		return false, err
	}
	return true, judgeHeader(path, head[:n], info.Size(), max(sizeOf(path+"-wal"), sizeOf(path+"-journal")))
}

func judgeHeader(path string, head []byte, size, journal int64) error {
	if len(head) < len(magic) || string(head[:len(magic)]) != magic {
		return &Fault{Path: path, Kind: ErrNotDatabase, Detail: "wrong magic", Hint: "give --db another path"}
	}
	if len(head) < headerSize {
		return truncated(path, size, headerSize)
	}
	if id := binary.BigEndian.Uint32(head[68:]); id != appID {
		return &Fault{Path: path, Kind: ErrForeign, Detail: fmt.Sprintf("application id %#x", id), Hint: "give --db another path; nothing was changed"}
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 65536
	}
	pages := int64(binary.BigEndian.Uint32(head[28:]))
	current := binary.BigEndian.Uint32(head[24:]) == binary.BigEndian.Uint32(head[92:])
	// While a log or a journal exists the missing pages may be in it, or coming.
	if want := page * pages; current && journal == 0 && size < want {
		return truncated(path, size, want)
	}
	return nil
}

func truncated(path string, size, want int64) error {
	return &Fault{
		Path: path, Kind: ErrTruncated, Detail: fmt.Sprintf("%d bytes of %d", size, want),
		Hint: "restore it from a copy (*.bak); nothing was changed",
	}
}

func walSize(path string) int64 { return sizeOf(path + "-wal") }

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
