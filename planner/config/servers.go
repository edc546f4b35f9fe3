package config

import (
	"strconv"
	"strings"
)

// servers checks a list of RPC servers. One that is named twice would be two
// devices with one memory between them.
func servers(text string) (ok bool, want string) {
	const form = "host:port[,host:port]"
	seen := map[string]bool{}
	for at := range strings.SplitSeq(text, ",") {
		at = strings.ToLower(strings.TrimSpace(at))
		i := strings.LastIndex(at, ":")
		if i <= 0 {
			return false, form
		}
		if port, err := strconv.Atoi(at[i+1:]); err != nil || port < 1 || port > 65535 {
			return false, form
		}
		if at[:i] == "localhost" {
			at = "127.0.0.1" + at[i:]
		}
		if seen[at] {
			return false, form + ", each server once: it is one memory"
		}
		seen[at] = true
	}
	return true, ""
}
