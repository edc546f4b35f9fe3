package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/bmoe/bmoe/engine"
	"github.com/bmoe/bmoe/engine/counters"
	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/engine/trace"
	"github.com/bmoe/bmoe/probes"
	"github.com/bmoe/bmoe/results/record"
)

// document builds the record of a run while it goes on.
type document struct {
	run    record.Run
	before counters.Counters // when the first turn began
	noted  int               // notes of the session that are among the warnings

	routing *trace.Trace // what the routers picked; nil of a resident model
}

func newDocument(ctx context.Context, r *runner) *document {
	d := &document{}
	d.run.Schema = record.RunSchema
	d.run.Machine = probes.Machine(ctx)
	d.run.Build = probes.WithEngine(probes.Build(), engine.Release, engine.CPUModule())
	d.run.Pins = r.pins
	return d
}

// identify reads what the model is from its file.
func (d *document) identify(path string) error {
	m, err := openModel(path)
	if err != nil {
		return err
	}
	d.run.Model, err = modelRecord(m)
	return err
}

var errNoModel = usageError{errors.New("no model given"), "name one with -m FILE; `bmoe synth -o model.gguf` makes one to try"}

const aModel = "give -m a GGUF file; `bmoe synth -o model.gguf` makes one to try"

// openModel reads what the file of -m says of itself.
func openModel(path string) (*model.Model, error) {
	if path == "" {
		return nil, errNoModel
	}
	m, err := model.Open(path)
	if err != nil {
		return nil, usageError{err, aModel}
	}
	return m, nil
}

// modelRecord names a model by its content.
func modelRecord(m *model.Model) (record.Model, error) {
	id, err := m.Hash()
	if err != nil {
		return record.Model{}, err
	}
	name := m.Name
	if name == "" {
		name = filepath.Base(m.Path)
	}
	r := record.Model{
		ID: id, Name: name, Arch: m.Arch, Layers: m.Layers - m.MTPLayers,
		Experts: m.Experts, ExpertsUsed: m.ExpertsUsed,
		RoutedBytes: m.RoutedBytes(), DenseBytes: m.DenseBytes(), TokenCycle: m.TokenCycle(0),
	}
	for _, n := range m.Sizes {
		r.Bytes += n
	}
	if len(m.ExpertTensors) > 0 {
		r.Quant = m.ExpertTensors[0].Quant
	}
	return r, nil
}

func (d *document) start(ctx context.Context, r *runner) {
	d.run.StartedAt = time.Now().UTC()
	d.run.Config, d.run.Plan, d.run.Prediction = r.cfg, r.plan, r.made
	d.run.EnvBefore = probes.Environment(ctx, r.cfg.Model)
}

func (d *document) opened(s *engine.Session) {
	d.run.Config = s.Config()
	d.run.Build = probes.WithEngine(probes.Build(), engine.Release, engine.CPUModule())
	d.notes(s)
	d.run.Measured.LoadS = s.LoadSeconds()
	d.before = s.Counters()
}

// notes takes over what the session said since it was last asked.
func (d *document) notes(s *engine.Session) {
	all := s.Notes()
	d.run.Warnings = append(d.run.Warnings, all[d.noted:]...)
	d.noted = len(all)
}

// turn adds one turn's result.
func (d *document) turn(res *engine.Result) {
	m := &d.run.Measured
	d.run.Tokens = append(d.run.Tokens, res.Tokens...)
	d.run.TokenNS = append(d.run.TokenNS, res.TokenNS...)
	d.run.TokenWaitNS = append(d.run.TokenWaitNS, res.TokenWaitNS...)
	d.run.TokenManageNS = append(d.run.TokenManageNS, res.TokenManageNS...)
	d.run.Text += res.Text
	d.run.LogitsHash = res.LogitsHash
	if m.PromptTokens == 0 {
		m.TTFTS = res.TTFT
		if res.PrefillS > 0 {
			m.PrefillTokensPerS = float64(res.PromptTokens) / res.PrefillS
		}
	}
	m.PromptTokens += int64(res.PromptTokens)
}

// measured derives the run's figures from its samples and counters.
func (d *document) measured(s *engine.Session) {
	d.notes(s)
	c := s.Counters()
	d.run.Stats = c
	if p := d.run.Plan; p != nil && p.Placement != nil {
		if held := s.Reserved(); held != nil {
			d.run.Reserved = p.Placement.Against(held, c.HostContextBytes, c.HostComputeBytes)
		}
	}
	d.routing = s.Routing()
	m := &d.run.Measured
	var ns int64
	for _, n := range d.run.TokenNS {
		ns += n
	}
	m.DecodeTokens = int64(len(d.run.TokenNS))
	if m.DecodeTokens > 0 {
		m.DecodeSPerToken = float64(ns) / 1e9 / float64(m.DecodeTokens)
		m.BytesPerToken = float64(c.DecodeBytesRead) / float64(m.DecodeTokens)
	}
	m.HitRate, _ = c.HitRate()
	m.RSSBytes = c.PeakRSS
	m.MajorFaults = c.MajorFaults - d.before.MajorFaults
	d.run.TokenHash = tokenHash(d.run.Tokens)
	if c.CacheResidentBytes > 0 && c.DecodeLookups > 0 && c.DecodeHits == 0 && d.run.Config.CacheMB > 0 {
		d.run.Warnings = append(d.run.Warnings, "the expert cache served no lookup: it is smaller than what one token needs under this policy")
	}
}

func (d *document) finish(ctx context.Context, err error) {
	d.run.FinishedAt = time.Now().UTC()
	d.run.EnvAfter = probes.Environment(ctx, d.run.Config.Model)
	switch {
	case err == nil:
		d.run.State = record.StateDone
	case ctx.Err() != nil || errors.Is(err, context.Canceled):
		d.run.State, d.run.ExitCode = record.StateInterrupted, exitInterrupted
	default:
		d.run.State, d.run.ExitCode, d.run.Error = record.StateFailed, exitFailure, err.Error()
	}
}
