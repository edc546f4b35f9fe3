package probes

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Host is the machine as the adapters see it: a tree of files rooted at "/",
// and the few facts that no file holds.
type Host struct {
	Files    fs.FS // rooted at "/"; names have no leading slash
	OS       string
	Arch     string
	PageSize int64 // bytes
	Now      func() time.Time
	local    bool // this machine, which may be asked in other ways too
}

// Local is the machine this process runs on.
func Local() *Host {
	return &Host{
		Files:    os.DirFS("/"),
		OS:       runtime.GOOS,
		Arch:     runtime.GOARCH,
		PageSize: int64(os.Getpagesize()),
		Now:      time.Now,
		local:    true,
	}
}

// read returns a file's text. name may start with a slash.
func (h *Host) read(name string) (string, error) {
	raw, err := fs.ReadFile(h.Files, clean(name))
	if err != nil {
		return "", err
	}
	return string(bytes.TrimRight(raw, "\x00")), nil
}

// word returns a one-value file's text without the white space around it.
func (h *Host) word(name string) (string, error) {
	text, err := h.read(name)
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return "", fmt.Errorf("/%s is empty", clean(name))
	}
	return text, nil
}

// number returns a one-number file's value.
func (h *Host) number(name string) (int64, error) {
	text, err := h.word(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/%s holds %q, not a number", clean(name), clip(text))
	}
	return n, nil
}

// list returns the names in a folder, none when it cannot be read.
func (h *Host) list(dir string) []string {
	entries, err := fs.ReadDir(h.Files, clean(dir))
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

func clean(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}

// clip shortens what a broken file held, for an error message.
func clip(text string) string {
	const most = 32
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
