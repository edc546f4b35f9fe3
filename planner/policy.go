package planner

import "github.com/bmoe/bmoe/planner/config"

// Policy holds every number of the planner that is a choice and not a
// measurement. A decision that turns on one is printed as [policy].
type Policy struct {
	// Shares of the budget kept free, by what a reclaim does here. A limit that
	// ends the process gets the widest.
	MarginKill     float64 `json:"margin_kill"`
	MarginCompress float64 `json:"margin_compress"`
	MarginSwap     float64 `json:"margin_swap"`
	MarginNone     float64 `json:"margin_none"`
	MarginUnknown  float64 `json:"margin_unknown"`
	// LockMargin is the share of the lockable total left alone: others draw on
	// it between the plan and the load, and its edge is a bad place to run.
	LockMargin float64 `json:"lock_margin"`

	// FitsAirRatio is the room beyond the model itself, as a share of what it
	// would hold, that residency needs where reclaim is cheap.
	FitsAirRatio float64 `json:"fits_air_ratio"`
	// CacheMinBytes is the generic smallest cache worth having; a model's own
	// token cycle overrides it.
	CacheMinBytes int64 `json:"cache_min_bytes"`
	// LaneTolerance is how far below the best rate a lane count may be and
	// still be chosen; the largest within it wins.
	LaneTolerance float64 `json:"lane_tolerance"`
	// SpreadWide is the spread of a rate from which the plan warns.
	SpreadWide float64 `json:"spread_wide"`

	// ComputeShareMax is the share of the holdable budget that context-wide
	// compute buffers may take before the graph is narrowed.
	ComputeShareMax float64 `json:"compute_share_max"`
	// UBatchMin is the narrowest graph, tokens, the width rule goes down to.
	UBatchMin int64 `json:"ubatch_min"`
	// UBatchDefault is llama.cpp's own width, tokens.
	UBatchDefault int64 `json:"ubatch_default"`

	// MinBackendWin is how many times faster a device must be before any rule
	// prefers it.
	MinBackendWin float64 `json:"min_backend_win"`
	// NMSEMax is the largest normalised mean squared error of a matmul that
	// counts as the same answer.
	NMSEMax float64 `json:"nmse_max"`
	// DeviceSplitSeconds prices a graph crossing where none was measured; 0
	// means unmeasured, and then no group is placed on a device.
	DeviceSplitSeconds float64 `json:"device_split_seconds"`

	// HitSlope is k of h = min(1, k f), the hits a decision credits a cache with
	// that holds a share f of the experts of a model nobody measured.
	HitSlope float64 `json:"hit_slope"`
	// HitTypical is a of h = 1 - exp(-a f), the hits such a cache is expected to
	// return, and HitMost the largest a seen.
	HitTypical float64 `json:"hit_typical"`
	HitMost    float64 `json:"hit_most"`
	// MinSpread is the smallest relative half-width of a predicted time: one
	// sample does not make an exact number.
	MinSpread float64 `json:"min_spread"`
	// PriorRuns is how many runs the spread assumed before any run was seen
	// counts as, where earlier runs measure it.
	PriorRuns float64 `json:"prior_runs"`
}

// DefaultPolicy returns the numbers the program ships with.
func DefaultPolicy() Policy {
	return Policy{
		MarginKill: 0.15, MarginCompress: 0.10, MarginSwap: 0.08, MarginNone: 0.08, MarginUnknown: 0.10,
		LockMargin:   0.05,
		FitsAirRatio: 0.25, CacheMinBytes: 256 << 20, LaneTolerance: 0.05, SpreadWide: 0.15,
		ComputeShareMax: 0.10, UBatchMin: 128, UBatchDefault: config.DefaultUBatch,
		MinBackendWin: 1.25, NMSEMax: config.MaxNMSE,
		HitSlope: 1, HitTypical: 5, HitMost: 14, MinSpread: 0.05, PriorRuns: 3,
	}
}
