package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
)

// readConfigJSON takes a resolved configuration: every knob in it counts as
// typed by hand.
func readConfigJSON(ctx context.Context, stdin io.Reader, path string) (config.Config, planner.Pins, error) {
	cfg := config.Default()
	raw, err := readText(ctx, stdin, path)
	if err != nil {
		return cfg, nil, refused(ctx, fmt.Errorf("--config-json: %w", err), "give a JSON file or - for standard input")
	}
	if err := decodeConfig(raw, &cfg); err != nil {
		return cfg, nil, usageError{fmt.Errorf("--config-json %s: %w", path, err), "`bmoe run --json` prints such a configuration under \"config\""}
	}
	if len(cfg.Stop) == 0 {
		cfg.Stop = nil // an empty list is the same configuration as none
	}
	pins := planner.Pins{}
	for _, p := range config.Table() {
		text := p.Get(&cfg)
		pins[p.Name] = text
		if p.Kind == config.List {
			continue
		}
		if err := p.Set(&cfg, text); err != nil {
			return cfg, nil, usageError{fmt.Errorf("--config-json %s: %w", path, err), "correct the value"}
		}
	}
	return cfg, pins, nil
}

// decodeConfig reads one JSON object and refuses what it cannot mean.
func decodeConfig(raw []byte, cfg *config.Config) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(cfg)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("is empty")
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("want an object of knobs, it is a JSON %s", kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("%s: a JSON %s cannot be its value, want %s", kind.Field, kind.Value, jsonKind(kind.Type.String()))
	case err != nil:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the configuration")
	}
	return givenTwice(raw)
}

// jsonKind names a Go type by what is written in JSON for it.
func jsonKind(name string) string {
	switch {
	case name == "bool":
		return "true or false"
	case name == "string":
		return "a string"
	case strings.HasPrefix(name, "float"):
		return "a number"
	case strings.Contains(name, "int"):
		return "a whole number"
	}
	return "a list of strings"
}

// givenTwice refuses an object that names a knob twice: which of the two was
// meant is nobody's to guess.
func givenTwice(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, _ := dec.Token(); open != json.Delim('{') {
		return nil // null, which says nothing
	}
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		name := strings.ToLower(key.(string)) // as the decoder matches names
		if seen[name] {
			return fmt.Errorf("%s is given twice", name)
		}
		seen[name] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
	}
	return nil
}
