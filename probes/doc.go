// Package probes measures: it turns a machine, a drive and a model file into
// the facts a plan is made of. Every adapter here answers with a value, how it
// was obtained and what it cost, or says that it does not know and which
// measurement is owed; none of them answers zero for "nobody looked".
//
// This is the only home of platform names. Files whose name ends in _linux
// read what Linux publishes; their _other twins answer unknown, so that the
// program builds and runs (with its defaults) anywhere.
//
// Adapters read through [Host], which is the machine itself or a recorded tree
// of /proc and /sys, so that the rules can be tested against machines that are
// not here.
package probes
