package engine

import "strings"

// pieces joins token texts, holding back what may be the start of a stop
// string or of a UTF-8 sequence.
type pieces struct {
	all  strings.Builder
	held string
	stop []string
	emit func(string)
}

func newPieces(stop []string, emit func(string)) *pieces { return &pieces{stop: stop, emit: emit} }

// add takes a token's text and reports whether a stop string is complete.
func (p *pieces) add(piece string) (stopped bool) {
	p.held += piece
	for _, s := range p.stop {
		if i := strings.Index(p.held, s); s != "" && i >= 0 {
			p.held = p.held[:i]
			return true
		}
	}
	keep := max(p.partialStop(), partialRune(p.held))
	p.send(p.held[:len(p.held)-keep])
	p.held = p.held[len(p.held)-keep:]
	return false
}

// partialStop is how many bytes at the end may begin a stop string.
func (p *pieces) partialStop() int {
	most := 0
	for _, s := range p.stop {
		for n := min(len(s)-1, len(p.held)); n > most; n-- {
			if strings.HasSuffix(p.held, s[:n]) {
				most = n
			}
		}
	}
	return most
}

// partialRune is how many bytes at the end are an unfinished UTF-8 sequence.
func partialRune(s string) int {
	for n := 1; n <= min(3, len(s)); n++ {
		b := s[len(s)-n]
		switch {
		case b < 0x80:
			return 0
		case b >= 0xF0:
			return keepIf(n < 4, n)
		case b >= 0xE0:
			return keepIf(n < 3, n)
		case b >= 0xC0:
			return keepIf(n < 2, n)
		}
	}
	return 0
}

func keepIf(cond bool, n int) int {
	if cond {
		return n
	}
	return 0
}

func (p *pieces) flush() {
	p.send(p.held)
	p.held = ""
}

func (p *pieces) send(text string) {
	if text == "" {
		return
	}
	p.all.WriteString(text)
	if p.emit != nil {
		p.emit(text)
	}
}

func (p *pieces) text() string { return p.all.String() }
