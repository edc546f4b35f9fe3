//go:build !linux

package stream

import (
	"sync/atomic"
	"time"
)

// sleepOn returns after a moment: callers look again.
func sleepOn(*atomic.Int32, int32, time.Duration) { time.Sleep(50 * time.Microsecond) }

func wake(*atomic.Int32, int32) {}
