// Package experiments asks one question at a time: one lever, a design written
// down before the first run, runs in fresh child processes, arms interleaved,
// entry conditions gated, validity checked, and a verdict from the analysis
// package. It is the only conductor: it knows what to run and in which order,
// not how a run works, where runs are kept or how a machine is read; those come
// in through small interfaces ([Runner], [Store], [Sensor]).
//
// A registered experiment never changes. Changing anything makes another one.
package experiments
