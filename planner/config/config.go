// Package config holds every knob of a run: one struct, and one table that
// describes each knob once (name, flag, environment variable, type, range,
// default, unit, lossy, lever). Flags, environment, JSON, validation, the
// reproduction line and the wording of reasons are all driven by the table, so
// renaming a knob here renames it everywhere.
//
// The package is pure: it does not read flags or the environment, it only says
// what they are called and applies values handed to it.
package config

// Auto is the value of a size knob that asks the planner (or, without a
// planner, the engine) to choose.
const Auto = -1

// DefaultUBatch is llama.cpp's width of a prompt's graph, tokens.
const DefaultUBatch = 512

// MaxNMSE is the normalised mean squared error up to which a device's result
// counts as the host's: what llama.cpp's own backend tests allow.
const MaxNMSE = 5e-4

// UBatch is the width of a prompt's graph, tokens, before the context bounds it.
func (c *Config) UBatch() int {
	if c.UBatchSize == 0 {
		return DefaultUBatch
	}
	return c.UBatchSize
}

// Config is a run's resolved knobs. Sizes named *MB are MiB, as the flags say.
type Config struct {
	// Model and input.
	Model        string   `json:"model"`
	Prompt       string   `json:"prompt,omitempty"`
	File         string   `json:"file,omitempty"`
	Chat         bool     `json:"chat"`
	Stop         []string `json:"stop,omitempty"`
	IgnoreEOS    bool     `json:"ignore_eos"`
	Predict      int      `json:"n_predict"`
	RandomTokens int64    `json:"random_tokens"` // seed; -1: off

	// Sampling.
	Seed int64   `json:"seed"`
	Temp float64 `json:"temp"`
	TopK int     `json:"top_k"`
	TopP float64 `json:"top_p"`

	// Compute.
	Threads      int    `json:"threads"`       // 0: llama.cpp's choice (physical cores)
	ThreadsBatch int    `json:"threads_batch"` // 0: same as Threads
	CtxSize      int    `json:"ctx_size"`
	BatchSize    int    `json:"batch_size"`  // 0: follows the context
	UBatchSize   int    `json:"ubatch_size"` // 0: llama.cpp's default
	CacheTypeK   string `json:"cache_type_k"`
	CacheTypeV   string `json:"cache_type_v"`
	FlashAttn    string `json:"flash_attn"`
	NExpertUsed  int    `json:"n_expert_used"` // 0: the model's own

	// Loading.
	MoeStream    bool   `json:"moe_stream"`
	LoadMode     string `json:"load_mode"`
	MmapAdvice   string `json:"mmap_advice"`
	Repack       string `json:"repack"`
	DenseWeights string `json:"dense_weights"`
	ReleaseMmap  bool   `json:"release_mmap"`

	// Expert streaming.
	CacheMB        int    `json:"cache_mb"` // Auto, 0: uncached
	CachePolicy    string `json:"cache_policy"`
	CachePin       bool   `json:"cache_pin"`
	CachePinFit    bool   `json:"cache_pin_fit"`
	IOThreads      int    `json:"io_threads"`
	ODirect        bool   `json:"odirect"`
	Overlap        bool   `json:"overlap"`
	ExpertPrefetch bool   `json:"expert_prefetch"`
	PrefillSlots   int    `json:"prefill_slots"`
	SlotsOnDemand  bool   `json:"prefill_slots_on_demand"`
	RouteTrace     string `json:"route_trace,omitempty"`

	// Devices.
	PrefillDevice     string `json:"prefill_device,omitempty"`
	PrefillBestEffort bool   `json:"prefill_best_effort"`
	PrefillMinTokens  int    `json:"prefill_min_tokens"`
	PrefillVerify     bool   `json:"prefill_verify"`
	RPC               string `json:"rpc,omitempty"`
	RPCMB             int    `json:"rpc_mb,omitempty"` // 0: what a server reports
	GPULayers         int    `json:"n_gpu_layers"`
	DeviceSplit       string `json:"device_split,omitempty"`
	OverrideTensor    string `json:"override_tensor,omitempty"`

	// Observation.
	LogitsHash bool `json:"logits_hash"`
}
