package results

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/bmoe/bmoe/results/exchange"
)

// ExportDB writes a ledger of its own to path, to be handed to others and
// merged there: one file, no log beside it. Without text it holds no path,
// prompt, answer, token or routing trace; the ids mean the same either way. An
// existing file is not overwritten.
func (s *Store) ExportDB(ctx context.Context, path string, text bool) (rep MergeReport, err error) {
	if _, err := os.Lstat(path); err == nil {
		return rep, fmt.Errorf("%s: %w; delete it or choose another name", path, fs.ErrExist)
	}
	out, err := Open(ctx, path, Options{})
	if err != nil {
		return rep, err
	}
	defer func() {
		err = errors.Join(err, out.Close())
		if err != nil {
			os.Remove(path)
		}
	}()
	from := source{name: s.path, path: s.path, dsn: dsn(s.sourcePath(), "mode=ro"), public: !text}
	if rep, err = out.merge(ctx, []source{from}, []string{"export"}); err != nil {
		return rep, err
	}
	// A file to be copied must not need a log.
	for _, q := range []string{"DELETE FROM import_log", "PRAGMA journal_mode = DELETE", "VACUUM"} {
		if _, err := out.writer.ExecContext(ctx, q); err != nil {
			return rep, out.fault(err)
		}
	}
	return rep, nil
}

// sourcePath is the file that is read: a migrated copy where the ledger itself
// is older and must not change.
func (s *Store) sourcePath() string {
	if s.tempDir != "" {
		return s.tempDir + "/" + copyName
	}
	return s.path
}

// Ledger reads what the exports of package exchange write.
func (s *Store) Ledger(ctx context.Context, f RunFilter) (*exchange.Ledger, error) {
	var l exchange.Ledger
	var err error
	if l.Runs, err = s.Runs(ctx, f); err != nil {
		return nil, err
	}
	if l.Experiments, err = s.experimentsOf(ctx, f); err != nil {
		return nil, err
	}
	if l.Verdicts, err = s.Verdicts(ctx, f.Experiment); err != nil {
		return nil, err
	}
	l.Fits, err = s.Fits(ctx, f.Model)
	return &l, err
}
