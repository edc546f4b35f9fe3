package reports

import "github.com/bmoe/bmoe/results/record"

// program is a build but for the CPU module, which ggml chooses by the machine.
type program struct {
	machine string
	build   record.Build
}

func programOf(machine record.Machine, b record.Build) program {
	b.ID, b.CPUModule = "", ""
	return program{machine.ID, b}
}

// wholeBuilds are the builds of runs that lived to say which CPU module they
// computed with, by program. One that said several stands for none.
func wholeBuilds(runs []record.StoredRun) map[program]record.Build {
	out := map[program]record.Build{}
	for i := range runs {
		b := runs[i].Run.Build
		if b.CPUModule == "" {
			continue
		}
		p := programOf(runs[i].Run.Machine, b)
		if other, ok := out[p]; ok && other.CPUModule != b.CPUModule {
			b = record.Build{}
		}
		out[p] = b
	}
	return out
}

// whole is b with its CPU module: a run that was killed, and an experiment
// registered before its first run, are by the same build as the runs that ended.
func whole(known map[program]record.Build, machine record.Machine, b record.Build) record.Build {
	if b.CPUModule == "" {
		if k := known[programOf(machine, b)]; k.CPUModule != "" {
			return k
		}
	}
	return b
}
