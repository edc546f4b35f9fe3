//go:build !linux

package probes

import "fmt"

func platformJob(job string) error { return fmt.Errorf("no job %q on this system", job) }
