package config

import (
	"strconv"
	"strings"
)

// Servers are the addresses of a list of RPC servers, in its order.
func Servers(list string) []string {
	var out []string
	for at := range strings.SplitSeq(list, ",") {
		if at = strings.TrimSpace(at); at != "" {
			out = append(out, at)
		}
	}
	return out
}

// checkServers checks a list of RPC servers. One that is named twice would be
// two devices with one memory between them.
func checkServers(text string) (ok bool, want string) {
	const form = "host:port[,host:port]"
	list := Servers(text)
	if len(list) != strings.Count(text, ",")+1 {
		return false, form
	}
	seen := map[string]bool{}
	for _, at := range list {
		at = strings.ToLower(at)
		i := strings.LastIndex(at, ":")
		if i <= 0 {
			return false, form
		}
		if strings.ContainsAny(at[:i], ":[]") && !bracketed(at[:i]) {
			return false, form + ", an IPv6 address in brackets: [::1]:50052"
		}
		if port, err := strconv.Atoi(at[i+1:]); err != nil || port < 1 || port > 65535 {
			return false, form
		}
		if at[:i] == "localhost" || at[:i] == "[::1]" {
			at = "127.0.0.1" + at[i:]
		}
		if seen[at] {
			return false, form + ", each server once: it is one memory"
		}
		seen[at] = true
	}
	return true, ""
}

// bracketed reports whether a host has the form of an IPv6 address in brackets.
func bracketed(host string) bool {
	inside, ok := strings.CutPrefix(host, "[")
	inside, closed := strings.CutSuffix(inside, "]")
	address, _, _ := strings.Cut(inside, "%") // a zone is a name of this machine's
	return ok && closed && strings.Count(address, ":") > 1 && strings.Trim(address, "0123456789abcdef:.") == ""
}
