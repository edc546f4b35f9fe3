//go:build !bmoe_bundle

package llama

// Test binaries lie in folders of their own: they find the libraries in the
// checkout. A bundle (`make release`) knows only the lib folder beside itself.

// #cgo LDFLAGS: -Wl,-rpath,${SRCDIR}/lib
import "C"
