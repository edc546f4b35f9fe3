package record

import (
	"fmt"
	"slices"

	"github.com/bmoe/bmoe/planner"
)

// Part is an entity as the ledger holds it: its id and its canonical JSON.
type Part struct {
	ID   string
	Body []byte
}

// Parts is a run taken apart for storage, so that what many runs share is held
// once. Plan and Prediction have an empty ID when the run had none.
type Parts struct {
	Run                 Part
	Machine             Part
	Build               Part
	Model               Part
	EnvBefore, EnvAfter Part
	Config              Part
	Plan, Prediction    Part
	Private             []byte // nil when nothing is private
	Samples             []byte // packed times; nil when there are none
	Tokens              []byte // packed token ids, private too; nil when there are none
}

// RunBody is the stored form of a run: the document with what is held
// elsewhere replaced by its id. The outer fields hide the embedded ones of the
// same JSON name.
type RunBody struct {
	Run
	RunID        string   `json:"run_id,omitempty"`
	Machine      string   `json:"machine"`
	Build        string   `json:"build"`
	Model        string   `json:"model"`
	ModelName    string   `json:"model_name,omitempty"`
	EnvBefore    string   `json:"env_before"`
	EnvAfter     string   `json:"env_after"`
	Config       string   `json:"config"`
	Plan         string   `json:"plan,omitempty"`
	Prediction   string   `json:"prediction,omitempty"`
	Tokens       *int     `json:"tokens,omitempty"`
	TokenNS      *int     `json:"token_ns,omitempty"`
	TokenWaitNS  *int     `json:"token_wait_ns,omitempty"`
	TokenManage  *int     `json:"token_manage_ns,omitempty"`
	SampleCount  int      `json:"sample_count"`
	SampleSHA    string   `json:"sample_sha256,omitempty"`
	TokenCount   int      `json:"token_count"`
	TokenSHA     string   `json:"token_sha256,omitempty"`
	ExperimentID string   `json:"experiment,omitempty"`
	Slot         *Slot    `json:"slot,omitempty"`
	Attempt      int      `json:"attempt,omitempty"`
	Stats        Sparse   `json:"stats"`
	Text         *string  `json:"text,omitempty"`
	Stderr       *string  `json:"stderr,omitempty"`
	_            struct{} // keyed literals only
}

// PredictionBody is the stored form of a prediction: what was expected, of
// what, and when it was written down.
type PredictionBody struct {
	Prediction
	Plan    string `json:"plan,omitempty"`
	Machine string `json:"machine"`
	Build   string `json:"build"`
	Model   string `json:"model"`
}

// Dissect takes a run apart. The ids of its parts are computed here; the ids
// inside the run are ignored, save that of the model.
func Dissect(r Run, experiment string, slot Slot, attempt int) (*Parts, error) {
	p := &Parts{}
	utc(&r.StartedAt, &r.FinishedAt, &r.EnvBefore.At, &r.EnvAfter.At)
	private := takeRun(&r)
	var err error
	body := RunBody{Run: r, Stats: Sparse{r.Stats}, ModelName: BaseName(r.Model.Name), ExperimentID: experiment, Attempt: attempt}
	if experiment != "" {
		body.Slot = &slot
	}
	if err := p.identities(r.Machine, r.Build, r.Model); err != nil {
		return nil, err
	}
	if p.EnvBefore, err = part("environment", r.EnvBefore); err != nil {
		return nil, err
	}
	if p.EnvAfter, err = part("environment", r.EnvAfter); err != nil {
		return nil, err
	}
	if p.Config, err = part("config", r.Config); err != nil {
		return nil, err
	}
	if err := p.plan(&r); err != nil {
		return nil, err
	}
	if p.Samples, body.SampleCount = PackSamples(SamplesOf(&r)); p.Samples != nil {
		body.SampleSHA = HashID(p.Samples)
	}
	if p.Tokens = PackTokens(r.Tokens); p.Tokens != nil {
		body.TokenCount, body.TokenSHA = len(r.Tokens), HashID(p.Tokens)
	}
	body.Machine, body.Build, body.Model = p.Machine.ID, p.Build.ID, p.Model.ID
	body.EnvBefore, body.EnvAfter, body.Config = p.EnvBefore.ID, p.EnvAfter.ID, p.Config.ID
	body.Plan, body.Prediction = p.Plan.ID, p.Prediction.ID
	if p.Run, err = part("run", body); err != nil {
		return nil, err
	}
	if !private.Empty() {
		p.Private, err = Canonical(private)
	}
	return p, err
}

func takeRun(r *Run) *Private {
	p := &Private{Label: r.Machine.Label, Text: r.Text, Stderr: r.Stderr}
	scrub := scrubber(&r.Config)
	r.Error, p.Error = takeText(r.Error, scrub)
	r.Warnings = p.takeWarnings(r.Warnings, scrub)
	p.Config = takeKnobs(&r.Config)
	r.Pins = p.takePins(r.Pins)
	if r.Plan != nil {
		plan := *r.Plan
		p.takePlan(&plan)
		r.Plan = &plan
	}
	return p
}

func (p *Parts) identities(m Machine, b Build, mo Model) (err error) {
	if p.Machine, err = part("machine", m.stable()); err != nil {
		return err
	}
	b.ID = ""
	if p.Build, err = part("build", b); err != nil {
		return err
	}
	id := mo.ContentID()
	mo.ID, mo.Name = "", ""
	if p.Model, err = part("model", mo); err != nil {
		return err
	}
	p.Model.ID = id
	return nil
}

func (p *Parts) plan(r *Run) (err error) {
	if r.Plan != nil {
		if p.Plan, err = part("plan", r.Plan); err != nil {
			return err
		}
	}
	if r.Prediction != nil {
		p.Prediction, err = p.prediction(*r.Prediction)
	}
	return err
}

func (p *Parts) prediction(pred Prediction) (Part, error) {
	utc(&pred.MadeAt)
	if pred.Falsifier == "" { // not made by NewPrediction: the same row all the same
		pred = NewPrediction(pred.Prediction, pred.MadeAt)
	}
	return part("prediction", PredictionBody{
		Prediction: pred, Plan: p.Plan.ID,
		Machine: p.Machine.ID, Build: p.Build.ID, Model: p.Model.ID,
	})
}

// DissectIdentities returns the stored forms of what an experiment is about.
func DissectIdentities(m Machine, b Build, mo Model) (*Parts, error) {
	p := &Parts{}
	return p, p.identities(m, b, mo)
}

// DissectPlan takes a plan and its prediction apart before any run.
func DissectPlan(m Machine, b Build, mo Model, plan planner.Plan, pred Prediction) (*Parts, error) {
	p := &Parts{}
	if err := p.identities(m, b, mo); err != nil {
		return nil, err
	}
	private := &Private{Label: m.Label}
	private.takePlan(&plan)
	if err := p.plan(&Run{Plan: &plan, Prediction: &pred}); err != nil {
		return nil, err
	}
	var err error
	if !private.Empty() {
		p.Private, err = Canonical(private)
	}
	return p, err
}

// DissectExperiment returns an experiment's stored form and its private parts,
// nil when there are none.
func DissectExperiment(e Experiment) (Part, []byte, error) {
	e.ID = ""
	utc(&e.RegisteredAt)
	private := &Private{Label: e.Machine.Label}
	e.Machine.Label = ""
	e.Model.Name = BaseName(e.Model.Name)
	e.Machine.ID, e.Build.ID, e.Model.ID = e.Machine.ContentID(), e.Build.ContentID(), e.Model.ContentID()
	e.Arms = slices.Clone(e.Arms)
	if err := private.takeWords(&e); err != nil {
		return Part{}, nil, err
	}
	for i := range e.Arms {
		if knobs := takeKnobs(&e.Arms[i].Config); knobs != nil {
			if private.Arms == nil {
				private.Arms = map[int]*PrivateKnobs{}
			}
			private.Arms[i] = knobs
		}
	}
	exp, err := part("experiment", e)
	if err != nil || private.Empty() {
		return exp, nil, err
	}
	body, err := Canonical(private)
	return exp, body, err
}

func part(what string, v any) (Part, error) {
	body, err := Canonical(v)
	if err != nil {
		return Part{}, fmt.Errorf("%s: %w", what, err)
	}
	return Part{HashID(body), body}, nil
}
