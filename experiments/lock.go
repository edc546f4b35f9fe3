package experiments

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// LockPath is where sweeps of this machine meet. It does not depend on the
// database: two sweeps with two databases disturb each other as well.
func LockPath() string { return filepath.Join(os.TempDir(), "bmoe-experiment.lock") }

// Lock waits until no other sweep runs on this machine, at most for wait, and
// returns what to call when done. waiting, if given, is told once which process
// is waited for. The lock ends with the process, however it ends.
func Lock(ctx context.Context, path string, wait time.Duration, waiting func(holder string)) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open the sweep lock: %w", err)
	}
	_ = f.Chmod(0o666) // for other users; the owner's sweep made it
	deadline := time.Now().Add(wait)
	for {
		free, err := tryLock(f)
		switch {
		case err != nil:
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		case free:
			_ = f.Truncate(0)
			_, _ = f.WriteAt([]byte(fmt.Sprintf("%d\n", os.Getpid())), 0)
			return func() { f.Close() }, nil
		case ctx.Err() != nil:
			f.Close()
			return nil, ErrInterrupted
		case !time.Now().Before(deadline):
			f.Close()
			return nil, fmt.Errorf("another experiment is running on this machine (process %s): the two would disturb each other", holder(path))
		}
		if waiting != nil {
			waiting(holder(path))
			waiting = nil
		}
		pause(ctx, 200*time.Millisecond)
	}
}

func holder(path string) string {
	b, err := os.ReadFile(path)
	if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
		return pid
	}
	return "unknown"
}
