package engine

import "github.com/bmoe/bmoe/engine/internal/llama"

// Libraries loads llama.cpp without a model and says where its libraries lie
// and which CPU module it chose for this machine.
func Libraries() (dir, module string, err error) {
	if err := llama.Init(); err != nil {
		return "", "", err
	}
	if dir, err = llama.LibDir(); err != nil {
		return "", "", err
	}
	return dir, llama.CPUModule(), nil
}
