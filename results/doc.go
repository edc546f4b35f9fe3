// Package results is the ledger: one SQLite file that holds what was planned,
// predicted, run and measured, and that merges with files from other machines.
//
// Entities are stored as canonical JSON under their content id, append-only.
// Columns are generated from that JSON, so the body is the only truth; what many
// runs share (machine, build, model, knobs, plan) is held once; per-token samples
// are packed into one blob a run. What may name a person, a path or a host is
// kept in a table of its own that takes no part in any id.
//
// It is the only package that knows SQL, and no SQL type leaves it.
package results
