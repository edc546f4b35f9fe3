package results

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/results/record"
)

// RegisterPlan writes a plan and its prediction down before the run that will
// judge it, and returns both ids. Give the run the same record.NewPrediction
// value and it will refer to this row.
func (s *Store) RegisterPlan(ctx context.Context, m record.Machine, b record.Build, mo record.Model, plan planner.Plan, madeAt time.Time) (planID, predictionID string, err error) {
	parts, err := record.DissectPlan(m, b, mo, plan, record.NewPrediction(plan.Prediction, madeAt))
	if err != nil {
		return "", "", fmt.Errorf("plan: %w: %w", ErrInvalid, err)
	}
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := putShared(ctx, tx, parts); err != nil {
			return err
		}
		return putPrivate(ctx, tx, "prediction", parts.Prediction.ID, parts.Private)
	})
	return parts.Plan.ID, parts.Prediction.ID, err
}

// putShared stores what a run or a plan refers to.
func putShared(ctx context.Context, tx *sql.Tx, p *record.Parts) error {
	rows := []struct {
		table string
		part  record.Part
	}{
		{"machine", p.Machine},
		{"build", p.Build},
		{"model", p.Model},
		{"environment", p.EnvBefore},
		{"environment", p.EnvAfter},
		{"config", p.Config},
		{"plan", p.Plan},
		{"prediction", p.Prediction},
	}
	for _, row := range rows {
		if row.part.ID == "" {
			continue
		}
		if err := put(ctx, tx, row.table, row.part); err != nil {
			return err
		}
	}
	return nil
}

// Predictions returns every registered prediction, oldest first, with its plan.
func (s *Store) Predictions(ctx context.Context) ([]record.StoredPrediction, error) {
	var out []record.StoredPrediction
	err := s.each(ctx, `SELECT p.id, p.body, coalesce(l.body, ''), coalesce(v.body, '{}') FROM prediction p
		LEFT JOIN plan l ON l.id = p.plan_id LEFT JOIN private v ON v.owner_id = p.id
		ORDER BY p.made_at, p.id`, nil, func(rows *sql.Rows) error {
		var id, body, planBody, private string
		if err := rows.Scan(&id, &body, &planBody, &private); err != nil {
			return err
		}
		p, err := decodePrediction(id, body, planBody, private)
		if err != nil {
			return fmt.Errorf("prediction %s: %w: %w", short(id), ErrCorrupt, err)
		}
		out = append(out, p)
		return nil
	})
	return out, err
}

func decodePrediction(id, body, planBody, private string) (record.StoredPrediction, error) {
	var b record.PredictionBody
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		return record.StoredPrediction{}, err
	}
	out := record.StoredPrediction{Prediction: b.Prediction, ID: id, PlanID: b.Plan, MachineID: b.Machine, BuildID: b.Build, ModelID: b.Model}
	if planBody == "" {
		return out, nil
	}
	out.Plan = &planner.Plan{}
	if err := json.Unmarshal([]byte(planBody), out.Plan); err != nil {
		return out, err
	}
	var p record.Private
	if err := json.Unmarshal([]byte(private), &p); err != nil {
		return out, err
	}
	p.RestorePlan(out.Plan)
	return out, nil
}

// each runs a query on the read side and calls fn for every row.
func (s *Store) each(ctx context.Context, query string, args []any, fn func(*sql.Rows) error) error {
	rows, err := s.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return s.fault(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return s.fault(err)
		}
	}
	return s.fault(rows.Err())
}
