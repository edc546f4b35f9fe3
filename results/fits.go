package results

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/results/record"
)

// SaveFit stores a fitted hit-rate model and returns its id.
func (s *Store) SaveFit(ctx context.Context, f record.Fit) (string, error) {
	f.ID = ""
	return s.saveBody(ctx, "fit", f)
}

// Fits returns the stored fits of a model (id or prefix; "" is all), those over
// several models included.
func (s *Store) Fits(ctx context.Context, model string) ([]record.Fit, error) {
	query, args := "SELECT id, body FROM fit", []any(nil)
	if model != "" {
		id, err := resolve(ctx, s.reader, "model", model)
		if err != nil {
			return nil, s.fault(err)
		}
		query, args = query+" WHERE model_id = ? OR model_id IS NULL", []any{id}
	}
	return bodies(ctx, s, query+" ORDER BY method, id", args, func(f *record.Fit, id string) { f.ID = id })
}

func (s *Store) saveBody(ctx context.Context, table string, v any) (string, error) {
	body, err := record.Canonical(v)
	if err != nil {
		return "", fmt.Errorf("%s: %w: %w", table, ErrInvalid, err)
	}
	p := record.Part{ID: record.HashID(body), Body: body}
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error { return put(ctx, tx, table, p) })
	return p.ID, err
}

// SaveFacts stores what a probe found and returns its id. The machine, and
// the model unless it is the zero Model, are stored with it.
func (s *Store) SaveFacts(ctx context.Context, m record.Machine, mo record.Model, at time.Time, facts []planner.FactLine) (string, error) {
	parts, err := record.DissectIdentities(m, record.Build{}, mo)
	if err != nil {
		return "", fmt.Errorf("profile: %w: %w", ErrInvalid, err)
	}
	p := record.Profile{MachineID: parts.Machine.ID, At: at.UTC(), Facts: facts}
	if mo != (record.Model{}) {
		p.ModelID = parts.Model.ID
	}
	body, err := record.Canonical(p)
	if err != nil {
		return "", fmt.Errorf("profile: %w: %w", ErrInvalid, err)
	}
	id := record.HashID(body)
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := put(ctx, tx, "machine", parts.Machine); err != nil {
			return err
		}
		if p.ModelID != "" {
			if err := put(ctx, tx, "model", parts.Model); err != nil {
				return err
			}
		}
		return put(ctx, tx, "profile", record.Part{ID: id, Body: body})
	})
	return id, err
}

// Profiles returns what probes found on a machine (id or prefix; "" is all),
// oldest first.
func (s *Store) Profiles(ctx context.Context, machine string) ([]record.Profile, error) {
	query, args := "SELECT id, body FROM profile", []any(nil)
	if machine != "" {
		id, err := resolve(ctx, s.reader, "machine", machine)
		if err != nil {
			return nil, s.fault(err)
		}
		query, args = query+" WHERE machine_id = ?", []any{id}
	}
	return bodies(ctx, s, query+" ORDER BY at, id", args, func(p *record.Profile, id string) { p.ID = id })
}
