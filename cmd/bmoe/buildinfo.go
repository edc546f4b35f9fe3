package main

import "runtime/debug"

// release is the version a release build was given (see .ci/release); empty in
// a build from a checkout.
var release string

// moduleVersion is the version a release was given, or what the Go tool made of
// the commit.
func moduleVersion() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
