package record

import "time"

// ContentID identifies a machine by its stable facts: neither its label nor
// anything that a reboot or a kernel update changes takes part.
func (m Machine) ContentID() string { return ID(m.stable()) }

// machineFacts spells out what identifies a machine, so that a field added to
// Machine later does not split every known machine in two.
type machineFacts struct {
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	Threads  int    `json:"threads"`
	RAMBytes int64  `json:"ram_bytes"`
	Storage  string `json:"storage"`
}

func (m Machine) stable() machineFacts {
	return machineFacts{m.OS, m.Arch, m.CPU, m.Cores, m.Threads, m.RAMBytes, m.Storage}
}

// ContentID identifies a build by everything it says of itself.
func (b Build) ContentID() string {
	b.ID = ""
	return ID(b)
}

// ContentID is the id taken from the model's file (header, tensor table, sampled
// bytes) where there is one, else the hash of what is known of its shape. The
// name takes no part: people rename files.
func (m Model) ContentID() string {
	if m.ID != "" {
		return m.ID
	}
	m.Name = ""
	return ID(m)
}

// ContentID identifies one snapshot of the environment.
func (e Environment) ContentID() string {
	e.At = e.At.UTC()
	return ID(e)
}

// ContentID identifies a verdict by its findings, method and inputs.
func (v Verdict) ContentID() string {
	v.ID = ""
	return ID(v)
}

// ContentID identifies a run that belongs to no experiment. It is what the
// ledger stores the run under; RunContentID is for a run of an experiment.
func (r Run) ContentID() string { return RunContentID(r, "", Slot{}, 0) }

// RunContentID identifies a run at its place in an experiment, or is "" when
// the run holds a number JSON cannot.
func RunContentID(r Run, experiment string, slot Slot, attempt int) string {
	p, err := Dissect(r, experiment, slot, attempt)
	if err != nil {
		return ""
	}
	return p.Run.ID
}

// ContentID identifies an experiment by everything registered, save the words
// that are kept out of exports (model path, prompt, machine label).
func (e Experiment) ContentID() string {
	part, _, err := DissectExperiment(e)
	if err != nil {
		return ""
	}
	return part.ID
}

func utc(times ...*time.Time) {
	for _, t := range times {
		*t = t.UTC()
	}
}
