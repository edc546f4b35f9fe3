package main

import (
	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/results/record"
)

// refit fits again what a stored fit was computed from.
func refit(in fitInput) (record.Fit, error) {
	in.points, in.ids = analysis.RunHits(in.runs, in.policy)
	_, fit, err := fitDocument(in)
	if err != nil {
		return record.Fit{}, err
	}
	return fitRecord(in, fit), nil
}
