//go:build !linux

package experiments

import "errors"

// CanDrop says that this platform can empty the page cache of a file.
const CanDrop = false

// DropFiles has no means here.
func DropFiles([]string) error { return errors.New("this platform cannot empty the page cache") }
