package record

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
)

// Private is what an entity says that may name a person, a path or a host, or
// that quotes a prompt or an answer. It is kept beside the entity, takes no part
// in its content id, and can so be left out of a shared copy without changing
// what the copy's ids mean.
type Private struct {
	Label      string                `json:"label,omitempty"`
	Text       string                `json:"text,omitempty"`
	Stderr     string                `json:"stderr,omitempty"`
	Error      string                `json:"error,omitempty"`
	Warnings   []string              `json:"warnings,omitempty"`
	Config     *PrivateKnobs         `json:"config,omitempty"`
	PlanConfig *PrivateKnobs         `json:"plan_config,omitempty"`
	Arms       map[int]*PrivateKnobs `json:"arms,omitempty"`
	Pins       map[string]string     `json:"pins,omitempty"`
	Decisions  map[int]string        `json:"decisions,omitempty"` // values, by index
	Said       map[int][2]string     `json:"said,omitempty"`      // briefs and reasons, by index
	Reproduce  []string              `json:"reproduce,omitempty"`
	Question   string                `json:"question,omitempty"`
	Falsifier  string                `json:"falsifier,omitempty"`
	Extra      map[string]any        `json:"extra,omitempty"`
}

// PrivateKnobs are the knobs whose values are private.
type PrivateKnobs struct {
	Model          string   `json:"model,omitempty"`
	Prompt         string   `json:"prompt,omitempty"`
	File           string   `json:"file,omitempty"`
	Stop           []string `json:"stop,omitempty"`
	RouteTrace     string   `json:"route_trace,omitempty"`
	RPC            string   `json:"rpc,omitempty"`
	OverrideTensor string   `json:"override_tensor,omitempty"`
}

// privateKnobNames are the same knobs by their names in the table.
var privateKnobNames = []string{"model", "prompt", "file", "stop", "route-trace", "rpc", "override-tensor"}

// Empty reports whether there is nothing private.
func (p *Private) Empty() bool { return reflect.ValueOf(*p).IsZero() }

func takeKnobs(c *config.Config) *PrivateKnobs {
	p := &PrivateKnobs{c.Model, c.Prompt, c.File, c.Stop, c.RouteTrace, c.RPC, c.OverrideTensor}
	c.Model, c.Prompt, c.File, c.Stop, c.RouteTrace, c.RPC, c.OverrideTensor = "", "", "", nil, "", "", ""
	if reflect.ValueOf(*p).IsZero() {
		return nil
	}
	return p
}

func (p *PrivateKnobs) restore(c *config.Config) {
	if p == nil {
		return
	}
	c.Model, c.Prompt, c.File, c.Stop = p.Model, p.Prompt, p.File, p.Stop
	c.RouteTrace, c.RPC, c.OverrideTensor = p.RouteTrace, p.RPC, p.OverrideTensor
}

// takePlan removes what is private from a plan; the caller's slices stay as
// they are.
func (p *Private) takePlan(plan *planner.Plan) {
	scrub := scrubber(&plan.Config)
	p.PlanConfig = takeKnobs(&plan.Config)
	p.Reproduce, plan.Reproduce = plan.Reproduce, nil
	plan.Decisions = slices.Clone(plan.Decisions)
	for i, d := range plan.Decisions {
		if slices.Contains(privateKnobNames, d.Knob) && d.Value != "" {
			if p.Decisions == nil {
				p.Decisions = map[int]string{}
			}
			p.Decisions[i] = d.Value
			plan.Decisions[i].Value = ""
		}
		if brief, reason := scrub(d.Brief), scrub(d.Reason); brief != d.Brief || reason != d.Reason {
			if p.Said == nil {
				p.Said = map[int][2]string{}
			}
			p.Said[i] = [2]string{d.Brief, d.Reason}
			plan.Decisions[i].Brief, plan.Decisions[i].Reason = brief, reason
		}
	}
}

// RestorePlan puts the private parts of a plan back.
func (p *Private) RestorePlan(plan *planner.Plan) {
	p.PlanConfig.restore(&plan.Config)
	plan.Reproduce = p.Reproduce
	for i, v := range p.Decisions {
		if i >= 0 && i < len(plan.Decisions) {
			plan.Decisions[i].Value = v
		}
	}
	for i, said := range p.Said {
		if i >= 0 && i < len(plan.Decisions) {
			plan.Decisions[i].Brief, plan.Decisions[i].Reason = said[0], said[1]
		}
	}
}

func (p *Private) takePins(pins planner.Pins) planner.Pins {
	var public planner.Pins
	for name, value := range pins {
		if slices.Contains(privateKnobNames, name) {
			if p.Pins == nil {
				p.Pins = map[string]string{}
			}
			p.Pins[name] = value
			continue
		}
		if public == nil {
			public = planner.Pins{}
		}
		public[name] = value
	}
	return public
}

// scrubber scrubs messages, the paths that the knobs name first: those may have
// blanks in them.
func scrubber(c *config.Config) func(string) string {
	var known []string
	for _, path := range []string{c.Model, c.File, c.RouteTrace} {
		if path == "" {
			continue
		}
		known = append(known, path)
		if dir := strings.TrimSuffix(path, BaseName(path)); len(dir) > 1 {
			known = append(known, dir)
		}
	}
	known = append(known, config.Servers(c.RPC)...)
	return func(text string) string {
		for _, path := range known {
			text = strings.ReplaceAll(text, path, "<path>")
		}
		return Scrub(text)
	}
}

// takeText keeps the original of a message whose public form differs.
func takeText(text string, scrub func(string) string) (public, private string) {
	if public = scrub(text); public != text {
		return public, text
	}
	return text, ""
}

// takeWords removes paths and hosts from what an experiment says in words.
func (p *Private) takeWords(e *Experiment) error {
	var c config.Config
	if len(e.Arms) > 0 {
		c = e.Arms[0].Config
	}
	scrub := scrubber(&c)
	e.Question, p.Question = takeText(e.Question, scrub)
	e.Falsifier, p.Falsifier = takeText(e.Falsifier, scrub)
	raw, err := json.Marshal(e.Extra)
	if err != nil {
		return err
	}
	var extra map[string]any // of JSON's own types, whatever they were
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&extra); err != nil {
		return err
	}
	if public, changed := scrubAll(extra, scrub); changed {
		p.Extra, e.Extra = e.Extra, public.(map[string]any)
	}
	return nil
}

// scrubAll scrubs every text in a JSON value, names of fields too.
func scrubAll(v any, scrub func(string) string) (public any, changed bool) {
	switch v := v.(type) {
	case string:
		text := scrub(v)
		return text, text != v
	case []any:
		out := make([]any, len(v))
		for i := range v {
			text, c := scrubAll(v[i], scrub)
			out[i], changed = text, changed || c
		}
		return out, changed
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			text, c := scrubAll(v[name], scrub)
			field := scrub(name)
			out[field], changed = text, changed || c || field != name
		}
		return out, changed
	}
	return v, false
}

// PublicError is a run's error as a shared copy holds it. What is derived from
// runs, such as a verdict, quotes this form: it is the same on every machine.
func PublicError(r *Run) string { return scrubber(&r.Config)(r.Error) }

func (p *Private) takeWarnings(warnings []string, scrub func(string) string) []string {
	public := slices.Clone(warnings)
	for i, w := range warnings {
		public[i] = scrub(w)
	}
	if !slices.Equal(public, warnings) {
		p.Warnings = warnings
	}
	return public
}

// RestoreRun puts a run's private parts back.
func (p *Private) RestoreRun(r *Run) {
	r.Machine.Label, r.Text, r.Stderr = p.Label, p.Text, p.Stderr
	if p.Error != "" {
		r.Error = p.Error
	}
	if p.Warnings != nil {
		r.Warnings = p.Warnings
	}
	p.Config.restore(&r.Config)
	for name, value := range p.Pins {
		if r.Pins == nil {
			r.Pins = planner.Pins{}
		}
		r.Pins[name] = value
	}
	if r.Plan != nil {
		p.RestorePlan(r.Plan)
	}
}

// RestoreExperiment puts an experiment's private parts back.
func (p *Private) RestoreExperiment(e *Experiment) {
	e.Machine.Label = p.Label
	if p.Question != "" {
		e.Question = p.Question
	}
	if p.Falsifier != "" {
		e.Falsifier = p.Falsifier
	}
	if p.Extra != nil {
		e.Extra = p.Extra
	}
	for i, knobs := range p.Arms {
		if i >= 0 && i < len(e.Arms) {
			knobs.restore(&e.Arms[i].Config)
		}
	}
}

// BaseName is the last part of a path of any system: a model may be named by
// its file, never by where that lies.
func BaseName(name string) string {
	return name[strings.LastIndexAny(name, `/\`)+1:]
}

// words are what a message is taken apart into to look for paths.
var words = regexp.MustCompile("[^\\s\"'`,;()=<>]+")

// pathLike is a word that is a path of its own (absolute, or relative to the
// home or current folder), a relative path to a file with an extension, a drive
// letter's, a user at a host, a host with a port, or an address.
var pathLike = regexp.MustCompile(`^(?:(?:~|\.{1,2})?/.+|[^/]+/.*\.[A-Za-z]\w{1,5}|[A-Za-z]:\\.+|[\w.+-]+@[\w.-]+|[\w-]*[A-Za-z][\w-]*(?:\.[\w-]+)*:\d{4,5}|\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?|\[[\w:.%]*:[\w:.%]*\](?::\d{1,5})?)$`)

// Scrub replaces paths and host names inside a message by a placeholder.
func Scrub(text string) string {
	return words.ReplaceAllStringFunc(text, func(word string) string {
		bare := strings.TrimRight(word, ":.-")
		if bare != "" && pathLike.MatchString(bare) {
			return "<path>" + word[len(bare):]
		}
		return word
	})
}
