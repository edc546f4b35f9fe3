package exchange

import (
	"time"

	"github.com/bmoe/bmoe/results/record"
)

// Row is a run as one flat row: the columns of the CSV and Parquet exports, in
// this order. A column whose quantity is unknown or was not measured is empty.
type Row struct {
	RunID        string    `parquet:"run_id"`
	ExperimentID *string   `parquet:"experiment_id,optional"`
	Lever        *string   `parquet:"lever,optional"`
	Arm          *string   `parquet:"arm,optional"`
	Block        *int64    `parquet:"block,optional"`
	Slot         *int64    `parquet:"slot,optional"`
	Attempt      int64     `parquet:"attempt"`
	Void         bool      `parquet:"void"`
	StartedAt    time.Time `parquet:"started_at,timestamp(microsecond)"`
	State        string    `parquet:"state"`
	ExitCode     int64     `parquet:"exit_code"`
	Signal       string    `parquet:"signal"`
	Error        string    `parquet:"error"`
	Tool         string    `parquet:"tool"` // bmoe, or the peer that measured it

	MachineID string `parquet:"machine_id"`
	OS        string `parquet:"os"`
	Arch      string `parquet:"arch"`
	CPU       string `parquet:"cpu"`
	Cores     int64  `parquet:"cores"`
	RAMBytes  int64  `parquet:"ram_bytes"`
	Storage   string `parquet:"storage"`

	Commit    string `parquet:"commit"`
	LlamaCPP  string `parquet:"llama_cpp"`
	CPUModule string `parquet:"cpu_module"`

	ModelID     string `parquet:"model_id"`
	ModelName   string `parquet:"model_name"`
	ModelArch   string `parquet:"model_arch"`
	Quant       string `parquet:"quant"`
	ModelBytes  int64  `parquet:"model_bytes"`
	Layers      int64  `parquet:"layers"`
	Experts     int64  `parquet:"experts"`
	ExpertsUsed int64  `parquet:"experts_used"`
	RoutedBytes int64  `parquet:"routed_bytes"`
	TokenCycle  int64  `parquet:"token_cycle_bytes"`

	MoeStream    bool   `parquet:"moe_stream"`
	CacheMB      int64  `parquet:"cache_mb"` // MiB; -1: auto
	CachePolicy  string `parquet:"cache_policy"`
	IOThreads    int64  `parquet:"io_threads"`
	ODirect      bool   `parquet:"odirect"`
	Overlap      bool   `parquet:"overlap"`
	DenseWeights string `parquet:"dense_weights"`
	Repack       string `parquet:"repack"`
	LoadMode     string `parquet:"load_mode"`
	Threads      int64  `parquet:"threads"`
	UBatch       int64  `parquet:"ubatch"`
	PrefillSlots int64  `parquet:"prefill_slots"`

	MemAvailable int64   `parquet:"mem_available_bytes"`
	CgroupLimit  int64   `parquet:"cgroup_limit_bytes"`
	Load1        float64 `parquet:"load1"`

	PredictedAt   *time.Time `parquet:"predicted_at,optional,timestamp(microsecond)"`
	PredDecode    *float64   `parquet:"predicted_decode_s_per_token,optional"`
	PredDecodeLo  *float64   `parquet:"predicted_decode_s_per_token_lo,optional"`
	PredDecodeHi  *float64   `parquet:"predicted_decode_s_per_token_hi,optional"`
	PredHitRate   *float64   `parquet:"predicted_hit_rate,optional"`
	PredBytes     *float64   `parquet:"predicted_bytes_per_token,optional"`
	DecodeS       *float64   `parquet:"decode_s_per_token,optional"`
	PrefillRate   *float64   `parquet:"prefill_tokens_per_s,optional"`
	TTFTS         *float64   `parquet:"ttft_s,optional"`
	LoadS         *float64   `parquet:"load_s,optional"`
	HitRate       *float64   `parquet:"hit_rate,optional"`
	BytesPerToken *float64   `parquet:"bytes_per_token,optional"`
	RSSBytes      *int64     `parquet:"rss_bytes,optional"`
	MajorFaults   int64      `parquet:"major_faults"`
	DecodeTokens  int64      `parquet:"decode_tokens"`
	PromptTokens  int64      `parquet:"prompt_tokens"`
	Lookups       int64      `parquet:"lookups"`
	Hits          int64      `parquet:"hits"`
	Misses        int64      `parquet:"misses"`
	Evictions     int64      `parquet:"evictions"`
	BytesRead     int64      `parquet:"bytes_read"`
	TokenHash     string     `parquet:"token_hash"`
	LogitsHash    string     `parquet:"logits_hash"`
}

// NewRow flattens a run; levers are the experiments' levers by their ids.
func NewRow(s record.StoredRun, levers map[string]string) Row {
	r := &s.Run
	row := Row{
		RunID: r.RunID, Attempt: int64(s.Attempt), Void: len(s.Void) > 0, StartedAt: r.StartedAt.UTC(), State: r.State,
		ExitCode: int64(r.ExitCode), Signal: r.Signal, Error: r.Error, Tool: tool(r),
		MachineID: r.Machine.ID, OS: r.Machine.OS, Arch: r.Machine.Arch, CPU: r.Machine.CPU,
		Cores: int64(r.Machine.Cores), RAMBytes: r.Machine.RAMBytes, Storage: r.Machine.Storage,
		Commit: r.Build.Commit, LlamaCPP: r.Build.LlamaCPP, CPUModule: r.Build.CPUModule,
		ModelID: r.Model.ID, ModelName: r.Model.Name, ModelArch: r.Model.Arch, Quant: r.Model.Quant,
		ModelBytes: r.Model.Bytes, Layers: int64(r.Model.Layers), Experts: int64(r.Model.Experts),
		ExpertsUsed: int64(r.Model.ExpertsUsed), RoutedBytes: r.Model.RoutedBytes, TokenCycle: r.Model.TokenCycle,
		MoeStream: r.Config.MoeStream, CacheMB: int64(r.Config.CacheMB), CachePolicy: r.Config.CachePolicy,
		IOThreads: int64(r.Config.IOThreads), ODirect: r.Config.ODirect, Overlap: r.Config.Overlap,
		DenseWeights: r.Config.DenseWeights, Repack: r.Config.Repack, LoadMode: r.Config.LoadMode,
		Threads: int64(r.Config.Threads), UBatch: int64(r.Config.UBatchSize), PrefillSlots: int64(r.Config.PrefillSlots),
		MemAvailable: r.EnvBefore.MemAvailable, CgroupLimit: r.EnvBefore.CgroupLimit, Load1: r.EnvBefore.Load1,
		MajorFaults: r.Measured.MajorFaults, DecodeTokens: r.Measured.DecodeTokens, PromptTokens: r.Measured.PromptTokens,
		Lookups: r.Stats.Lookups, Hits: r.Stats.Hits, Misses: r.Stats.Misses, Evictions: r.Stats.Evictions,
		BytesRead: r.Stats.BytesRead, TokenHash: r.TokenHash, LogitsHash: r.LogitsHash,
	}
	row.place(s, levers)
	row.expected(r.Prediction)
	row.measured(r)
	return row
}

func tool(r *record.Run) string {
	if r.Peer != nil {
		return r.Peer.Tool
	}
	return "bmoe"
}

func (row *Row) place(s record.StoredRun, levers map[string]string) {
	if s.ExperimentID == "" {
		return
	}
	row.ExperimentID, row.Arm = &s.ExperimentID, &s.Slot.Arm
	block, slot := int64(s.Slot.Block), int64(s.Slot.Index)
	row.Block, row.Slot = &block, &slot
	if lever, ok := levers[s.ExperimentID]; ok {
		row.Lever = &lever
	}
}

func (row *Row) expected(p *record.Prediction) {
	if p == nil {
		return
	}
	at := p.MadeAt.UTC()
	row.PredictedAt = &at
	if e := p.DecodeSPerToken; e.Known {
		row.PredDecode, row.PredDecodeLo, row.PredDecodeHi = &e.Point, &e.Lo, &e.Hi
	}
	if e := p.HitRate; e.Known {
		row.PredHitRate = &e.Point
	}
	if e := p.BytesPerToken; e.Known {
		row.PredBytes = &e.Point
	}
}

// measured leaves out what a run did not get to: a zero time is no time.
func (row *Row) measured(r *record.Run) {
	m := r.Measured
	row.DecodeS, row.PrefillRate = positive(m.DecodeSPerToken), positive(m.PrefillTokensPerS)
	row.TTFTS, row.LoadS = positive(m.TTFTS), positive(m.LoadS)
	if r.Stats.Lookups > 0 || r.Stats.DecodeLookups > 0 {
		row.HitRate, row.BytesPerToken = &m.HitRate, &m.BytesPerToken
	}
	if m.RSSBytes > 0 {
		row.RSSBytes = &m.RSSBytes
	}
}

func positive(v float64) *float64 {
	if v > 0 {
		return &v
	}
	return nil
}
