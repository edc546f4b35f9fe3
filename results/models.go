package results

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/bmoe/bmoe/results/record"
)

// SaveModel stores what a model is and returns its id, so that a routing of it
// can be stored before any run is.
func (s *Store) SaveModel(ctx context.Context, m record.Model) (string, error) {
	parts, err := record.DissectIdentities(record.Machine{}, record.Build{}, m)
	if err != nil {
		return "", fmt.Errorf("model: %w: %w", ErrInvalid, err)
	}
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error { return put(ctx, tx, "model", parts.Model) })
	return parts.Model.ID, err
}
