package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

var advices = map[string]int{"random": unix.MADV_RANDOM, "sequential": unix.MADV_SEQUENTIAL, "willneed": unix.MADV_WILLNEED}

// adviseMappings applies --mmap-advice to the mappings llama.cpp made of the
// model's shards. Stock llama.cpp leaves them at the kernel's read-ahead, which
// may be many times an expert.
func (s *Session) adviseMappings() error {
	advice, ok := advices[s.cfg.MmapAdvice]
	if !ok {
		return nil
	}
	shards := map[string]bool{}
	for _, name := range s.layout.Shards {
		if abs, err := filepath.Abs(name); err == nil {
			shards[abs] = true
		}
		if real, err := filepath.EvalSymlinks(name); err == nil {
			if real, err = filepath.Abs(real); err == nil {
				shards[real] = true
			}
		}
	}
	raw, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		s.notes = append(s.notes, "--mmap-advice: this system does not say what is mapped; the kernel's read-ahead stays")
		return nil
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || !shards[strings.Join(fields[5:], " ")] {
			continue
		}
		if err := s.advise(fields[0], advice); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) advise(span string, advice int) error {
	lo, hi, _ := strings.Cut(span, "-")
	from, err1 := strconv.ParseUint(lo, 16, 64)
	to, err2 := strconv.ParseUint(hi, 16, 64)
	if err1 != nil || err2 != nil || to <= from {
		return nil
	}
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), uintptr(advice)); errno != 0 {
		return fmt.Errorf("--mmap-advice %s: %w", s.cfg.MmapAdvice, errno)
	}
	if advice == unix.MADV_RANDOM {
		s.advised += int64(to - from)
	}
	return nil
}
