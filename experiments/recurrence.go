package experiments

import (
	"context"
	"fmt"
	"strings"

	"github.com/bmoe/bmoe/results/record"
)

// Recurrence looks for the same comparison in earlier concluded experiments on
// the same machine and model and says what they found. One tight interval from
// one sitting may be an accident of memory layout; a finding that comes back in
// another sitting is worth more.
func Recurrence(ctx context.Context, store Store, e record.Experiment, c record.Comparison) (string, error) {
	all, err := store.Experiments(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for i := range all {
		old := &all[i]
		if old.ID == e.ID || !sameQuestion(old, &e) || !old.RegisteredAt.Before(e.RegisteredAt) {
			continue
		}
		verdicts, err := store.Verdicts(ctx, old.ID)
		if err != nil {
			return "", err
		}
		for _, v := range verdicts {
			for _, o := range v.Comparisons {
				if o.Arm == c.Arm && o.Baseline == c.Baseline {
					found = append(found, o.Verdict)
				}
			}
		}
	}
	if len(found) == 0 {
		return "", nil
	}
	agree := 1
	for _, f := range found {
		if f == c.Verdict {
			agree++
		}
	}
	return fmt.Sprintf("%s in %d of %d experiments (before: %s)", c.Verdict, agree, len(found)+1, strings.Join(found, ", ")), nil
}

func sameQuestion(a, b *record.Experiment) bool {
	return a.Kind == b.Kind && a.Lever == b.Lever && a.Metric == b.Metric &&
		a.Machine.ContentID() == b.Machine.ContentID() && a.Model.ContentID() == b.Model.ContentID()
}
