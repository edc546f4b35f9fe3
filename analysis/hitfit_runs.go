package analysis

import "github.com/bmoe/bmoe/results/record"

// minLookups is the fewest decode lookups from which a run's hit rate counts: a
// handful says more of the prompt than of the cache.
const minLookups = 100

// StreamedHit returns a run's hit rate as a point for FitHits, and false when
// it has none to give: it did not finish, was void, streamed nothing, held
// everything, or held less than one token cycle of a cache with a cliff.
func StreamedHit(r *record.StoredRun) (HitPoint, bool) {
	run := &r.Run
	c, m := &run.Stats, &run.Model
	if len(r.Void) > 0 || run.State != record.StateDone || !run.Config.MoeStream || m.RoutedBytes <= 0 || c.CacheBudgetBytes <= 0 || c.DecodeLookups < minLookups {
		return HitPoint{}, false
	}
	f := float64(c.CacheBudgetBytes) / float64(m.RoutedBytes)
	if f >= 1 || (run.Config.CachePolicy == "lru" && c.CacheBudgetBytes < m.TokenCycle) {
		return HitPoint{}, false
	}
	return HitPoint{F: f, H: float64(c.DecodeHits) / float64(c.DecodeLookups), Weight: 1, Cluster: run.Machine.ID + "/" + m.ID}, true
}

// RunHits returns the points of the runs under one cache policy and the ids of
// those runs.
func RunHits(runs []record.StoredRun, policy string) (points []HitPoint, ids []string) {
	for i := range runs {
		if runs[i].Run.Config.CachePolicy != policy {
			continue
		}
		if p, ok := StreamedHit(&runs[i]); ok {
			points, ids = append(points, p), append(ids, runs[i].Run.RunID)
		}
	}
	return points, ids
}

// ScoredDecode returns the runs' predictions of seconds per decoded token with
// what was measured. The baseline is the last measured value of the same
// machine and model, and the roofline of the prediction has no part in it.
func ScoredDecode(runs []record.StoredRun) []Scored {
	var out []Scored
	last := map[string]float64{}
	for i := range runs {
		r := &runs[i].Run
		m := r.Measured.DecodeSPerToken
		if len(runs[i].Void) > 0 || r.State != record.StateDone || !(m > 0) {
			continue
		}
		key := r.Machine.ID + "/" + r.Model.ID
		if r.Prediction != nil && r.Prediction.DecodeSPerToken.Known && !r.Prediction.MadeAt.After(r.StartedAt) {
			e := r.Prediction.DecodeSPerToken
			out = append(out, Scored{Predicted: e.Point, Lo: e.Lo, Hi: e.Hi, Measured: m, Baseline: last[key], Cluster: key})
		}
		last[key] = m
	}
	return out
}

// HitErrors returns measured less predicted hit rate, as fractions, of the runs
// that predicted one before they started.
func HitErrors(runs []record.StoredRun) []float64 {
	var out []float64
	for i := range runs {
		r := &runs[i].Run
		if len(runs[i].Void) > 0 || r.State != record.StateDone || r.Prediction == nil || !r.Prediction.HitRate.Known || r.Prediction.MadeAt.After(r.StartedAt) || r.Stats.DecodeLookups < minLookups {
			continue
		}
		out = append(out, r.Measured.HitRate-r.Prediction.HitRate.Point)
	}
	return out
}
