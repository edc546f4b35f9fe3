package results

import (
	"errors"
	"fmt"

	sqlite "github.com/mattn/go-sqlite3"
)

// What can be wrong with a ledger file. Errors of this package wrap one of
// these where it applies.
var (
	ErrNotDatabase = errors.New("is not a SQLite database")
	ErrForeign     = errors.New("is a SQLite database, but not one of bmoe's")
	ErrTruncated   = errors.New("is cut short")
	ErrNewer       = errors.New("was written by a newer bmoe")
	ErrOlder       = errors.New("was written by an older bmoe")
	ErrCorrupt     = errors.New("is corrupt")
	ErrConflict    = errors.New("same id, other content")
	ErrFull        = errors.New("the disk is full")
	ErrReadOnly    = errors.New("is on a read-only medium")
	ErrNetworkFS   = errors.New("is on a file system that cannot hold a write-ahead log")
	ErrBusy        = errors.New("is held by another program")
	ErrNotFound    = errors.New("not found")
	ErrAmbiguous   = errors.New("fits more than one")
	ErrInvalid     = errors.New("cannot be stored")
)

// Fault is something wrong with a ledger file.
type Fault struct {
	Path   string
	Kind   error // one of the errors above
	Detail string
	Hint   string // what to type or do next
	cause  error
}

func (f *Fault) Error() string {
	msg := fmt.Sprintf("%s %v", f.Path, f.Kind)
	if f.Detail != "" {
		msg += ": " + f.Detail
	}
	return msg
}

// Unwrap gives the kind and the cause.
func (f *Fault) Unwrap() []error {
	if f.cause == nil {
		return []error{f.Kind}
	}
	return []error{f.Kind, f.cause}
}

// Hint is what to do about err, or "".
func Hint(err error) string {
	var f *Fault
	if errors.As(err, &f) {
		return f.Hint
	}
	return ""
}

// IsDataFault reports whether err is a conflict, or says that a file is corrupt
// or not a ledger: what the program ends with exit code 5 for.
func IsDataFault(err error) bool {
	for _, kind := range []error{ErrNotDatabase, ErrForeign, ErrTruncated, ErrNewer, ErrCorrupt, ErrConflict} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// fault turns an error of the driver into one that names the file and says
// what to do; other errors pass through.
func (s *Store) fault(err error) error { return faultOf(s.path, err) }

func faultOf(path string, err error) error {
	var se sqlite.Error
	var already *Fault
	if err == nil || errors.As(err, &already) || !errors.As(err, &se) {
		return err
	}
	f := &Fault{Path: path, Detail: se.Error(), cause: err}
	switch se.Code {
	case sqlite.ErrNotADB:
		f.Kind, f.Hint = ErrNotDatabase, "give --db another path"
	case sqlite.ErrCorrupt:
		f.Kind, f.Hint = ErrCorrupt, "run `bmoe db check`; a copy made before the last migration may lie beside it (*.bak)"
	case sqlite.ErrFull:
		f.Kind, f.Hint = ErrFull, "free some space and run again; what was acknowledged is stored"
	case sqlite.ErrReadonly, sqlite.ErrPerm:
		f.Kind, f.Hint = ErrReadOnly, "give --db a path that can be written"
	case sqlite.ErrBusy, sqlite.ErrLocked:
		f.Kind, f.Hint = ErrBusy, "wait for it, or give --db another path"
	case sqlite.ErrCantOpen:
		return fmt.Errorf("%s: cannot be opened: %w", path, err)
	default:
		return fmt.Errorf("%s: %w", path, err)
	}
	return f
}

func isBusy(err error) bool {
	var se sqlite.Error
	return errors.As(err, &se) && (se.Code == sqlite.ErrBusy || se.Code == sqlite.ErrLocked)
}
