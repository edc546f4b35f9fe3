//go:build !linux

package probes

import (
	"errors"
	"fmt"
	"runtime"
)

var errPlatform = fmt.Errorf("not known how to ask %s", runtime.GOOS)

func placeOf(string) (place, error) { return place{}, errPlatform }

func cachedFraction([]string) float64 { return -1 }

func openDrive(string) (drive, error) {
	return nil, errors.Join(errPlatform, errors.New("storage is not probed on this system"))
}

func lockTest(int64) (int64, error) { return 0, errNoTrial }

func newHolder(*Host) (holder, error) { return nil, errPlatform }

func offerSelf() error { return errPlatform }
