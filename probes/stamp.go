package probes

import "time"

// stamp is how a fact says when it was taken.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// since is the seconds from start to now by the host's clock.
func (h *Host) since(start time.Time) float64 { return h.Now().Sub(start).Seconds() }
