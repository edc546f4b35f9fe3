package planner

// Profile is everything the planner is told: the model, the machine and what
// earlier runs taught. Sizes are bytes, rates bytes per second, times seconds.
// No rule asks for a platform or a device by name.
type Profile struct {
	Model     ModelFacts     `json:"model"`
	Memory    MemoryFacts    `json:"memory"`
	Locks     LockFacts      `json:"locks"`
	Cores     CoreFacts      `json:"cores"`
	Host      HostFacts      `json:"host"`
	Backends  BackendFacts   `json:"backends"`
	Devices   []Device       `json:"devices,omitempty"`
	Placement PlacementFacts `json:"placement"`
	Buffers   BufferFacts    `json:"buffers"`
	Storage   StorageFacts   `json:"storage"`
	Overheads OverheadFacts  `json:"overheads"`
	Hits      HitFacts       `json:"hits"`
}

// ModelFacts come from the file's metadata; no tensor data is read for them.
type ModelFacts struct {
	Arch        Fact[string] `json:"arch"`
	Layers      Fact[int64]  `json:"layers"`       // that the graph runs
	MoeLayers   Fact[int64]  `json:"moe_layers"`   // of those, with routed experts
	Experts     Fact[int64]  `json:"experts"`      // per layer; 0: a dense model
	ExpertsUsed Fact[int64]  `json:"experts_used"` // per token
	TrainCtx    Fact[int64]  `json:"train_ctx"`

	FileBytes   Fact[int64] `json:"file_bytes"`
	RoutedBytes Fact[int64] `json:"routed_bytes"` // all routed experts the graph may use
	TokenCycle  Fact[int64] `json:"token_cycle"`  // expert bytes one token needs, at the model's own width

	DenseRead Fact[int64] `json:"dense_read"` // read whole for every token
	DenseRow  Fact[int64] `json:"dense_row"`  // one row a token: an embedding table that is not the head
	DenseIdle Fact[int64] `json:"dense_idle"` // in the file, not read by the graph

	Slices       Fact[[]SliceClass] `json:"slices"`
	Quants       Fact[[]QuantShare] `json:"quants"` // of the routed experts
	LayerExperts Fact[int64]        `json:"layer_experts"`
	LayerOther   Fact[int64]        `json:"layer_other"`

	TiedHead  Flag        `json:"tied_head"`
	HeadTable Fact[int64] `json:"head_table"` // the embedding table's bytes, where it is also the head
	MTPUsed   Flag        `json:"mtp_used"`   // multi-token-prediction blocks are run

	KElems Fact[int64] `json:"k_elems"` // numbers one token adds to the K cache, over all layers
	VElems Fact[int64] `json:"v_elems"`

	ExpertFile Fact[string] `json:"expert_file"` // the shard that holds most expert bytes
}

// SliceClass is a set of expert slices of one size: one projection of one
// expert in Layers layers.
type SliceClass struct {
	Projection string `json:"projection"`
	Quant      string `json:"quant"`
	Bytes      int64  `json:"bytes"` // of one expert's slice
	Layers     int64  `json:"layers"`
	Repackable bool   `json:"repackable,omitempty"` // the CPU backend has a repacked layout for it
}

// QuantShare is how many bytes of routed experts have one type.
type QuantShare struct {
	Quant string `json:"quant"`
	Bytes int64  `json:"bytes"`
}

// Reclaim is what happens to this process's anonymous memory under pressure.
type Reclaim string

// The kinds of reclaim.
const (
	ReclaimKill     Reclaim = "kill"     // the process is ended for exceeding its share
	ReclaimCompress Reclaim = "compress" // pages are compressed in memory first
	ReclaimSwap     Reclaim = "swap"     // pages are written to a disk
	ReclaimNone     Reclaim = "none"     // nothing takes them
)

// MemoryFacts say how much this process may hold and what takes it back.
type MemoryFacts struct {
	Total         Fact[int64]   `json:"total"`
	Holdable      Fact[int64]   `json:"holdable"` // reported: the smaller of what is available and the limit's headroom
	Available     Fact[int64]   `json:"available"`
	LimitBytes    Fact[int64]   `json:"limit_bytes"`    // tightest control-group limit; 0: none
	LimitHeadroom Fact[int64]   `json:"limit_headroom"` // limit - (usage - reclaimable file cache)
	Reclaim       Fact[Reclaim] `json:"reclaim"`
	SwapFree      Fact[int64]   `json:"swap_free"`
	Estimate      Fact[int64]   `json:"headroom_estimate"` // what a compressing reclaim could make room for
	Headroom      Fact[int64]   `json:"headroom_measured"` // held in steps until pages went
	PageSize      Fact[int64]   `json:"page_size"`
	Overcommit    Fact[string]  `json:"overcommit"` // never, heuristic, always
}

// LockFacts say what may be held where the kernel may not take it. A query
// that failed or was denied is unknown, which is not zero.
type LockFacts struct {
	Store      Flag        `json:"store"`       // a reclaim-exempt allocation exists
	StoreBytes Fact[int64] `json:"store_bytes"` // its total, net of what anyone it counts already holds
	InPlace    Fact[int64] `json:"in_place"`    // lockable where it already sits, net
	UpperBound Fact[int64] `json:"upper_bound"` // a bound known independently of a failed query, zero included
	SharedPool Flag        `json:"shared_pool"` // store and in-place locks draw on one total

	CacheRefused Fact[int64] `json:"cache_refused"` // bytes an earlier run of this plan was refused
	DenseRefused Fact[int64] `json:"dense_refused"`
}

// CoreClass is a set of equal cores, fastest class first.
type CoreClass struct {
	Cores    int     `json:"cores"`
	MaxMHz   float64 `json:"max_mhz,omitempty"`
	Capacity int     `json:"capacity,omitempty"` // scheduler units
}

// CoreFacts are printed and decide nothing: a count derived from core classes
// was refuted by the first machine that had them.
type CoreFacts struct {
	Classes  Fact[[]CoreClass] `json:"classes"`
	Physical Fact[int64]       `json:"physical"`
	NUMA     Fact[int64]       `json:"numa"`
	Governor Fact[string]      `json:"governor"`
	TempC    Fact[float64]     `json:"temp_c"`
	FreqMHz  Fact[float64]     `json:"freq_mhz"`
}

// HostFacts are the CPU backend's rates on the model's own shapes and types.
type HostFacts struct {
	Narrow       Fact[float64] `json:"narrow"`        // bytes of weights per second, one token wide
	Wide         Fact[float64] `json:"wide"`          // weight bytes x 128 tokens per second, 128 wide
	NarrowRepack Fact[float64] `json:"narrow_repack"` // the same with repacked weights
	WideRepack   Fact[float64] `json:"wide_repack"`
	CopyRate     Fact[float64] `json:"copy_rate"`    // memcpy of resident pages
	Dense        Fact[float64] `json:"dense"`        // one token wide, the type of most other weights
	DenseRepack  Fact[float64] `json:"dense_repack"` // the same repacked
}

// BackendFacts keep three answers apart: no accelerator here, none in this
// build, nobody looked.
type BackendFacts struct {
	Looked Flag        `json:"looked"`
	Linked Fact[int64] `json:"linked"` // accelerator backends linked into the build
	Loaded Fact[int64] `json:"loaded"` // loaded as modules at run time
}

// Device is a compute device other than the host's CPU. Name is only the
// handle a run passes on.
type Device struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`

	Usable        Flag `json:"usable"`           // No: its probe ended the process that ran it
	HostMemory    Flag `json:"host_memory"`      // its memory is the host's
	HostBuffer    Flag `json:"host_buffer"`      // offers a host buffer type
	HostPtr       Flag `json:"host_ptr_buffers"` // wraps memory we own; advertised Yes or unknown, never No
	HostPtrHonour Flag `json:"host_ptr_honoured"`
	NeedsRepack   Flag `json:"needs_repack"`
	RunsExpertOp  Flag `json:"runs_expert_op"`    // every expert type in the file
	BuffersExempt Flag `json:"buffers_exempt"`    // its buffers are reclaim-exempt memory of the host
	Identity      Flag `json:"identity_ok"`       // agrees with the host one token wide
	IdentityWide  Flag `json:"identity_wide_ok"`  // and 128 wide
	Places        Flag `json:"places_layers"`     // the capacity fitter places layers on it
	TakesFullIDs  Flag `json:"takes_full_layers"` // computes from full-width slots
	SetsUp        Flag `json:"sets_up"`           // No: the last run that asked for it had to do without

	NMSE         Fact[float64]      `json:"nmse"`
	NMSEWide     Fact[float64]      `json:"nmse_wide"`
	Narrow       Fact[float64]      `json:"narrow"`
	Wide         Fact[float64]      `json:"wide"`
	CopyRate     Fact[float64]      `json:"copy_rate"` // host to device
	FreeBytes    Fact[int64]        `json:"free_bytes"`
	TotalBytes   Fact[int64]        `json:"total_bytes"`
	SplitSeconds Fact[float64]      `json:"split_seconds"` // one crossing between it and the host
	Compute      Fact[[]WidthPoint] `json:"compute"`       // its compute buffer at graph widths
}

// WidthPoint is a compute buffer's size for graphs of a width.
type WidthPoint struct {
	Width int64 `json:"width"` // tokens
	Bytes int64 `json:"bytes"`
}

// DeviceShare is what the capacity fitter gave one device.
type DeviceShare struct {
	Device string `json:"device"`
	Layers int64  `json:"layers"`
	Bytes  int64  `json:"bytes"`
}

// PlacementFacts are the capacity fitter's answer, as it gave it.
type PlacementFacts struct {
	Asked       Flag                `json:"asked"`
	GPULayers   Fact[int64]         `json:"gpu_layers"`
	Shares      Fact[[]DeviceShare] `json:"shares"`
	Overrides   Fact[string]        `json:"overrides"`    // PATTERN=BUFFER[,...]
	HostExperts Fact[int64]         `json:"host_experts"` // routed bytes left on the host
	HostDense   Fact[int64]         `json:"host_dense"`   // other bytes left on the host
	HostContext Fact[int64]         `json:"host_context"` // of the context, beside the devices' part
	HostCompute Fact[int64]         `json:"host_compute"` // of compute buffers on the host
	Width       Fact[int64]         `json:"width"`        // tokens of the widest graph it has room for
	SplitFFN    Flag                `json:"split_ffn"`    // a layer's experts are divided between device and host
}

// BufferFacts are llama.cpp's own projection of what a session reserves on the
// host, at the context and cache types the run will open with.
type BufferFacts struct {
	Context Fact[int64]        `json:"context"`
	Compute Fact[[]WidthPoint] `json:"compute"` // at two or more widths
}

// RatePoint is one point of the storage rate curve.
type RatePoint struct {
	Size      int64   `json:"size"`  // bytes of one request
	Lanes     int     `json:"lanes"` // concurrent requests
	BytesPerS float64 `json:"bytes_per_s"`
	Spread    float64 `json:"spread,omitempty"`
}

// StorageFacts are about the file that holds the experts, on its own drive.
type StorageFacts struct {
	Curve          Fact[[]RatePoint] `json:"curve"`
	Refault        Fact[float64]     `json:"refault"` // page-sized scattered reads, one lane
	ODirect        Flag              `json:"odirect"` // uncached reads return the right bytes
	Buffered       Fact[float64]     `json:"buffered"`
	MapSerialises  Flag              `json:"mapping_serialises"` // Yes or unknown, never No
	RateMapped     Fact[float64]     `json:"rate_mapped"`        // with a mapping alive
	RateUnmapped   Fact[float64]     `json:"rate_unmapped"`
	Align          Fact[int64]       `json:"align"`
	Drift          Fact[float64]     `json:"drift"` // last sample / first sample - 1
	FileSystem     Fact[string]      `json:"file_system"`
	DecidingSample Fact[int64]       `json:"deciding_sample"` // bytes read at the deciding point
}

// OverheadFacts are the engine's own costs, measured by a calibration or by
// earlier runs of this build.
type OverheadFacts struct {
	PerLookup  Fact[float64] `json:"per_lookup"`  // finding a slot, choosing a victim, remapping
	PerLayer   Fact[float64] `json:"per_layer"`   // what a streamed token took beside every priced term, per MoE layer; may be negative
	PerNode    Fact[float64] `json:"per_node"`    // one graph node's barrier and dispatch
	Nodes      Fact[int64]   `json:"nodes"`       // of a one-token graph
	PerRead    Fact[float64] `json:"per_read"`    // submitting and reaping one read
	RepackRate Fact[float64] `json:"repack_rate"` // bytes repacked per second by all lanes
	ReadsScale Fact[float64] `json:"reads_scale"` // time of reads under compute, of the probe's
	Fill       Fact[float64] `json:"fill"`        // seconds per byte of cache filled for the first time, beside the reads' price
	Resident   Fact[float64] `json:"resident"`    // a resident token's time beside every priced term; may be negative
	Prefill    Fact[float64] `json:"prefill"`     // time of a prompt pass, of the priced one
	Residual   Fact[float64] `json:"residual"`    // half-width of what earlier runs left unexplained, ln(measured/priced), at 90 %
}

// HitPoint is one point of a hit-rate curve.
type HitPoint struct {
	Bytes   int64   `json:"bytes"`          // cache budget
	Hit     float64 `json:"hit"`            // fraction of decode lookups
	ByteHit float64 `json:"byte_hit"`       // fraction of bytes; 0: as Hit
	Half    float64 `json:"half,omitempty"` // half-width of the next run's interval, at 90 %
}

// HitCurve is a measured curve of one policy on recorded routing of this model.
type HitCurve struct {
	Policy string     `json:"policy"`
	Points []HitPoint `json:"points"`
}

// HitFacts say how many lookups a cache serves, best source first: a measured
// curve, a fitted coefficient, the linear default of the policy.
type HitFacts struct {
	Curves Fact[[]HitCurve] `json:"curves"`
	Fit    Fact[HitFit]     `json:"fit"`
}

// The shapes of a fitted hit rate.
const (
	ShapeLine       = "line"       // h = min(1, K f), also where no shape is named
	ShapeSaturating = "saturating" // h = 1 - exp(-K f)
)

// HitFit is the hit rate as earlier runs of this model fitted it: a shape with
// one coefficient, its interval, and the band of f it was fitted in.
type HitFit struct {
	Shape  string  `json:"shape,omitempty"`
	K      float64 `json:"k"`
	Lo     float64 `json:"lo"`
	Hi     float64 `json:"hi"`
	FromF  float64 `json:"from_f"`
	ToF    float64 `json:"to_f"`
	Policy string  `json:"policy,omitempty"`
}
