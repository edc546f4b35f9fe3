package results

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/bmoe/bmoe/results/record"
)

// SaveExperiment registers an experiment before its first run and returns its
// id. An experiment that brings an id must bring its content id.
func (s *Store) SaveExperiment(ctx context.Context, e record.Experiment) (string, error) {
	exp, private, err := record.DissectExperiment(e)
	if err != nil {
		return "", fmt.Errorf("experiment: %w: %w", ErrInvalid, err)
	}
	if e.ID != "" && e.ID != exp.ID {
		return "", fmt.Errorf("experiment %s: its content id is %s: %w", short(e.ID), short(exp.ID), ErrInvalid)
	}
	parts, err := record.DissectIdentities(e.Machine, e.Build, e.Model)
	if err != nil {
		return "", fmt.Errorf("experiment: %w: %w", ErrInvalid, err)
	}
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for table, part := range map[string]record.Part{"machine": parts.Machine, "build": parts.Build, "model": parts.Model} {
			if err := put(ctx, tx, table, part); err != nil {
				return err
			}
		}
		if err := put(ctx, tx, "experiment", exp); err != nil {
			return err
		}
		return putPrivate(ctx, tx, "experiment", exp.ID, private)
	})
	return exp.ID, err
}

// Experiment returns one experiment; a prefix of its id is enough.
func (s *Store) Experiment(ctx context.Context, id string) (record.Experiment, error) {
	id, err := resolve(ctx, s.reader, "experiment", id)
	if err != nil {
		return record.Experiment{}, s.fault(err)
	}
	found, err := s.experiments(ctx, "WHERE e.id = ?", id)
	if err != nil {
		return record.Experiment{}, err
	}
	return found[0], nil
}

// Experiments returns all experiments, oldest first, void ones included: ask
// Events what was said of them.
func (s *Store) Experiments(ctx context.Context) ([]record.Experiment, error) {
	return s.experiments(ctx, "")
}

// experimentsOf returns the experiments a filter may choose runs of, without
// what is private unless the filter asks for it.
func (s *Store) experimentsOf(ctx context.Context, f RunFilter) ([]record.Experiment, error) {
	cond, args := "WHERE 1", []any(nil)
	for _, ref := range []struct{ table, column, prefix string }{{"experiment", "id", f.Experiment}, {"model", "model_id", f.Model}, {"machine", "machine_id", f.Machine}} {
		if ref.prefix == "" {
			continue
		}
		id, err := resolve(ctx, s.reader, ref.table, ref.prefix)
		if err != nil {
			return nil, s.fault(err)
		}
		cond += " AND e." + ref.column + " = ?"
		args = append(args, id)
	}
	return s.readExperiments(ctx, f.Text, cond, args...)
}

func (s *Store) experiments(ctx context.Context, cond string, args ...any) ([]record.Experiment, error) {
	return s.readExperiments(ctx, true, cond, args...)
}

func (s *Store) readExperiments(ctx context.Context, text bool, cond string, args ...any) ([]record.Experiment, error) {
	var out []record.Experiment
	query := "SELECT e.id, e.body, coalesce(p.body, '{}') FROM experiment e LEFT JOIN private p ON p.owner_id = e.id " +
		cond + " ORDER BY e.registered_at, e.id"
	err := s.each(ctx, query, args, func(rows *sql.Rows) error {
		var id string
		var body, private sql.RawBytes
		if err := rows.Scan(&id, &body, &private); err != nil {
			return err
		}
		var e record.Experiment
		var p record.Private
		if err := decode(body, &e); err != nil {
			return fmt.Errorf("experiment %s: %w", short(id), err)
		}
		if err := decode(private, &p); err != nil {
			return fmt.Errorf("experiment %s: %w", short(id), err)
		}
		e.ID = id
		if text {
			p.RestoreExperiment(&e)
		}
		out = append(out, e)
		return nil
	})
	return out, err
}

// SaveVerdict stores what a method found in an experiment's runs, together with
// which runs it saw, and returns its id.
func (s *Store) SaveVerdict(ctx context.Context, v record.Verdict) (string, error) {
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		exp, err := resolve(ctx, tx, "experiment", v.ExperimentID)
		if err != nil {
			return err
		}
		v.ExperimentID = exp
		if v.Inputs, err = verdictInputs(ctx, tx, exp); err != nil {
			return err
		}
		v.ID = ""
		body, err := record.Canonical(v)
		if err != nil {
			return fmt.Errorf("verdict: %w: %w", ErrInvalid, err)
		}
		v.ID = record.HashID(body)
		return put(ctx, tx, "verdict", record.Part{ID: v.ID, Body: body})
	})
	return v.ID, err
}

// verdictInputs hashes which runs an experiment has and which of them are void:
// a verdict whose inputs differ from these is out of date, not wrong.
func verdictInputs(ctx context.Context, q queryer, experiment string) (string, error) {
	ids, err := column(ctx, q, `SELECT id FROM run WHERE experiment_id = ?1
		UNION ALL SELECT 'void ' || subject FROM event WHERE kind = 'void'
		AND (subject = ?1 OR subject IN (SELECT id FROM run WHERE experiment_id = ?1))`, experiment)
	slices.Sort(ids)
	return record.ID(slices.Compact(ids)), err
}

// Verdicts returns the verdicts on an experiment (id or prefix; "" means all)
// that still stand: computed from the runs it has now.
func (s *Store) Verdicts(ctx context.Context, experiment string) ([]record.Verdict, error) {
	all, err := s.allVerdicts(ctx, experiment)
	if err != nil {
		return nil, err
	}
	current := map[string]string{}
	var out []record.Verdict
	for _, v := range all {
		inputs, ok := current[v.ExperimentID]
		if !ok {
			if inputs, err = verdictInputs(ctx, s.reader, v.ExperimentID); err != nil {
				return nil, s.fault(err)
			}
			current[v.ExperimentID] = inputs
		}
		if v.Inputs == inputs {
			out = append(out, v)
		}
	}
	return out, nil
}

func (s *Store) allVerdicts(ctx context.Context, experiment string) ([]record.Verdict, error) {
	query, args := "SELECT id, body FROM verdict", []any(nil)
	if experiment != "" {
		id, err := resolve(ctx, s.reader, "experiment", experiment)
		if err != nil {
			return nil, s.fault(err)
		}
		query, args = query+" WHERE experiment_id = ?", []any{id}
	}
	return bodies(ctx, s, query+" ORDER BY experiment_id, method, id", args, func(v *record.Verdict, id string) { v.ID = id })
}

// bodies decodes the rows (id, body) of a query.
func bodies[T any](ctx context.Context, s *Store, query string, args []any, setID func(*T, string)) ([]T, error) {
	var out []T
	err := s.each(ctx, query, args, func(rows *sql.Rows) error {
		var id string
		var body sql.RawBytes
		if err := rows.Scan(&id, &body); err != nil {
			return err
		}
		var v T
		if err := decode(body, &v); err != nil {
			return fmt.Errorf("%s: %w", short(id), err)
		}
		setID(&v, id)
		out = append(out, v)
		return nil
	})
	return out, err
}

// Void says that a run or an experiment (id or prefix) does not count, and why.
// The run stays; the statement is appended.
func (s *Store) Void(ctx context.Context, id, why string) error {
	return s.AddEvent(ctx, record.Event{Kind: record.EventVoid, Subject: id, Why: why, At: time.Now()})
}

// AddEvent appends something said of a run or an experiment (id or prefix),
// without the paths and hosts in it: an event is shared as it stands.
func (s *Store) AddEvent(ctx context.Context, e record.Event) error {
	return s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		id, err := resolve(ctx, tx, "run", e.Subject)
		if err != nil {
			if id, err = resolve(ctx, tx, "experiment", e.Subject); err != nil {
				return fmt.Errorf("run or %w", err)
			}
		}
		e.Subject, e.ID, e.At, e.Why = id, "", e.At.UTC(), record.Scrub(e.Why)
		body, err := record.Canonical(e)
		if err != nil {
			return err
		}
		return put(ctx, tx, "event", record.Part{ID: record.HashID(body), Body: body})
	})
}

// Events returns what was said of a run or an experiment (full id; "" means of
// all), oldest first.
func (s *Store) Events(ctx context.Context, subject string) ([]record.Event, error) {
	query, args := "SELECT id, body FROM event", []any(nil)
	if subject != "" {
		query, args = query+" WHERE subject = ?", []any{subject}
	}
	return bodies(ctx, s, query+" ORDER BY at, id", args, func(e *record.Event, id string) { e.ID = id })
}
