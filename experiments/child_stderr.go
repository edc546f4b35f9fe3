package experiments

import (
	"regexp"
	"strings"
)

// lastLine is the last line that is not empty: where a program says what ended
// it. A hint below it is indented and skipped.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n "), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if l := lines[i]; strings.TrimSpace(l) != "" && !strings.HasPrefix(l, " ") {
			return strings.TrimPrefix(strings.TrimSpace(l), "bmoe: ")
		}
	}
	return ""
}

// A Go program whose C code crashes prints the signal and a traceback and ends
// with code 2, which otherwise means a command line that was refused.
var crash = regexp.MustCompile(`(?m)^(?:(SIG[A-Z]+): .*|fatal error: .*|panic: .*)$`)

// crashLine finds what a crashing program said first, and the signal it names.
func crashLine(stderr string) (line, signal string) {
	m := crash.FindStringSubmatch(stderr)
	if m == nil {
		return "", ""
	}
	return m[0], m[1]
}

// endsBuffer keeps the beginning and the end of what is written to it.
type endsBuffer struct{ head, tail []byte }

func (b *endsBuffer) Write(p []byte) (int, error) {
	n := len(p)
	if room := maxHead - len(b.head); room > 0 {
		take := min(room, len(p))
		b.head = append(b.head, p[:take]...)
		p = p[take:]
	}
	const mark = len("\n...\n")
	b.tail = append(b.tail, p...)
	if extra := len(b.tail) - (maxStderr - maxHead - mark); extra > 0 {
		b.tail = append(b.tail[:0], b.tail[extra:]...)
	}
	return n, nil
}

func (b *endsBuffer) String() string {
	joint := ""
	if len(b.tail) == maxStderr-maxHead-len("\n...\n") {
		joint = "\n...\n"
	}
	return strings.ToValidUTF8(string(b.head)+joint+string(b.tail), "?")
}
