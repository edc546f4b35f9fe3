package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the type of a knob's value.
type Kind string

// The kinds a knob may have.
const (
	Bool   Kind = "bool"
	Int    Kind = "int"
	Float  Kind = "float"
	Enum   Kind = "enum"
	String Kind = "string"
	List   Kind = "list"
)

// Param describes one knob.
type Param struct {
	// Name is the knob's name in plans, levers and --help: the long flag
	// without its dashes.
	Name  string
	Short string // one-letter flag, as llama.cpp spells it
	// Alias is another long flag with the same meaning.
	Alias string
	// Dash is llama.cpp's spelling of several letters behind one dash ("ub").
	Dash string
	// No is the spelling of a Bool knob's off flag; "" means --no-NAME when
	// the default is on, and no off flag when it is off.
	No      string
	Kind    Kind
	Enum    []string
	Min     float64
	Max     float64
	Unit    string
	Lossy   bool // changes what the model computes; never set by a plan
	Lever   bool // may be swept
	Group   string
	Help    string
	pointer func(*Config) any
	// want is what a String knob accepts, beside "": a check and its wording.
	want func(text string) (ok bool, want string)
}

// Env is the environment variable that sets the knob.
func (p *Param) Env() string {
	return "BMOE_" + strings.ToUpper(strings.ReplaceAll(p.Name, "-", "_"))
}

// Flag is the long flag with its dashes.
func (p *Param) Flag() string { return "--" + p.Name }

// Pointer returns the address of the knob's field in c: a *bool, *int, *int64,
// *float64, *string or *[]string.
func (p *Param) Pointer(c *Config) any { return p.pointer(c) }

// Get returns the knob's value in c as text that Set accepts.
func (p *Param) Get(c *Config) string {
	switch v := p.pointer(c).(type) {
	case *bool:
		return strconv.FormatBool(*v)
	case *int:
		if *v == Auto && p.Min == Auto {
			return "auto"
		}
		return strconv.Itoa(*v)
	case *int64:
		return strconv.FormatInt(*v, 10)
	case *float64:
		return strconv.FormatFloat(*v, 'g', -1, 64)
	case *string:
		return *v
	case *[]string:
		return strings.Join(*v, ",")
	}
	panic("config: unreachable kind of " + p.Name)
}

// Set parses text into the knob's field of c and checks its range. The error
// names the flag and what it accepts.
func (p *Param) Set(c *Config, text string) error {
	switch v := p.pointer(c).(type) {
	case *bool:
		return p.setBool(v, text)
	case *int:
		n, err := p.parseInt(text)
		if err == nil {
			*v = int(n)
		}
		return err
	case *int64:
		n, err := p.parseInt(text)
		if err == nil {
			*v = n
		}
		return err
	case *float64:
		return p.setFloat(v, text)
	case *string:
		return p.setString(v, text)
	case *[]string:
		*v = append(*v, text)
		return nil
	}
	panic("config: unreachable kind of " + p.Name)
}

func (p *Param) setBool(v *bool, text string) error {
	switch strings.ToLower(text) {
	case "true", "on", "yes", "1", "":
		*v = true
	case "false", "off", "no", "0":
		*v = false
	default:
		return p.bad(text, "on or off")
	}
	return nil
}

func (p *Param) parseInt(text string) (int64, error) {
	if text == "auto" && p.Min == Auto {
		return Auto, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, p.bad(text, p.rangeText("a whole number"))
	}
	if float64(n) < p.Min || float64(n) > p.Max {
		return 0, p.bad(text, p.rangeText("a whole number"))
	}
	return n, nil
}

func (p *Param) setFloat(v *float64, text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= p.Min && f <= p.Max) {
		return p.bad(text, p.rangeText("a number"))
	}
	*v = f
	return nil
}

func (p *Param) setString(v *string, text string) error {
	if p.Kind == Enum {
		for _, e := range p.Enum {
			if e == text {
				*v = text
				return nil
			}
		}
		return p.bad(text, "one of "+strings.Join(p.Enum, ", "))
	}
	if p.want != nil && text != "" {
		if ok, want := p.want(text); !ok {
			return p.bad(text, want)
		}
	}
	*v = text
	return nil
}

func (p *Param) rangeText(what string) string {
	lo := strconv.FormatFloat(p.Min, 'f', -1, 64)
	hi := strconv.FormatFloat(p.Max, 'f', -1, 64)
	if p.Min == Auto && p.Kind == Int {
		lo, what = "0", "auto or "+what
	}
	s := fmt.Sprintf("%s from %s to %s", what, lo, hi)
	if p.Unit != "" {
		s += " (" + p.Unit + ")"
	}
	return s
}

func (p *Param) bad(text, want string) error {
	return &ValueError{Flag: p.Flag(), Text: text, Want: want}
}

// ValueError says that a knob was given a value it does not accept.
type ValueError struct {
	Flag string // with dashes
	Text string // what was given
	Want string // what it accepts
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("%s %q: want %s", e.Flag, e.Text, e.Want)
}
