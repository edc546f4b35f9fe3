package config

import "slices"

const maxInt = 1 << 31

// Groups, in the order --help lists them.
const (
	GroupInput   = "input"
	GroupSample  = "sampling"
	GroupCompute = "compute"
	GroupLoad    = "loading"
	GroupStream  = "expert streaming"
	GroupDevice  = "devices"
	GroupObserve = "observation"
)

// CachePolicies are the cache policies the engine runs, default first.
var CachePolicies = []string{"a2d", "lru", "layer-lru", "layer-lfu"}

// KV cache types llama.cpp accepts.
var kvTypes = []string{"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"}

var table = []Param{
	{Name: "model", Short: "m", Kind: String, Group: GroupInput, Help: "GGUF file, or the first shard of a split one", pointer: func(c *Config) any { return &c.Model }},
	{Name: "prompt", Short: "p", Kind: String, Group: GroupInput, Help: "prompt text", pointer: func(c *Config) any { return &c.Prompt }},
	{Name: "file", Short: "f", Kind: String, Group: GroupInput, Help: "read the prompt from a file (- for standard input)", pointer: func(c *Config) any { return &c.File }},
	{Name: "chat", Kind: Bool, Group: GroupInput, Help: "wrap the prompt in the model's chat template", pointer: func(c *Config) any { return &c.Chat }},
	{Name: "stop", Short: "r", Alias: "reverse-prompt", Kind: List, Group: GroupInput, Help: "stop when this text is generated (repeatable)", pointer: func(c *Config) any { return &c.Stop }},
	{Name: "ignore-eos", Kind: Bool, Group: GroupInput, Help: "go on after an end-of-generation token", pointer: func(c *Config) any { return &c.IgnoreEOS }},
	{Name: "predict", Short: "n", Alias: "n-predict", Kind: Int, Min: 0, Max: maxInt, Unit: "tokens", Group: GroupInput, Help: "tokens to generate", pointer: func(c *Config) any { return &c.Predict }},
	{Name: "random-tokens", Kind: Int, Min: -1, Max: 1 << 53, Group: GroupInput, Help: "feed seeded random tokens instead of sampled ones, for benchmarks (-1: off)", pointer: func(c *Config) any { return &c.RandomTokens }},

	{Name: "seed", Short: "s", Kind: Int, Min: 0, Max: 1<<32 - 1, Group: GroupSample, Help: "sampling seed", pointer: func(c *Config) any { return &c.Seed }},
	{Name: "temp", Kind: Float, Min: 0, Max: 100, Group: GroupSample, Help: "temperature; 0 is greedy", pointer: func(c *Config) any { return &c.Temp }},
	{Name: "top-k", Kind: Int, Min: 0, Max: maxInt, Group: GroupSample, Help: "sample among the k likeliest tokens (0: all)", pointer: func(c *Config) any { return &c.TopK }},
	{Name: "top-p", Kind: Float, Min: 0, Max: 1, Group: GroupSample, Help: "sample among the likeliest tokens that sum to p (1: all)", pointer: func(c *Config) any { return &c.TopP }},

	{Name: "threads", Short: "t", Kind: Int, Min: 0, Max: 1024, Unit: "threads", Lever: true, Group: GroupCompute, Help: "compute threads (0: one per physical core)", pointer: func(c *Config) any { return &c.Threads }},
	{Name: "threads-batch", Dash: "tb", Kind: Int, Min: 0, Max: 1024, Unit: "threads", Group: GroupCompute, Help: "compute threads of a prompt (0: as --threads)", pointer: func(c *Config) any { return &c.ThreadsBatch }},
	{Name: "ctx-size", Short: "c", Kind: Int, Min: 16, Max: 1 << 24, Unit: "tokens", Group: GroupCompute, Help: "context size", pointer: func(c *Config) any { return &c.CtxSize }},
	{Name: "batch-size", Short: "b", Kind: Int, Min: 0, Max: 1 << 24, Unit: "tokens", Group: GroupCompute, Help: "logical batch (0: follows the context)", pointer: func(c *Config) any { return &c.BatchSize }},
	{Name: "ubatch", Dash: "ub", Alias: "ubatch-size", Kind: Int, Min: 0, Max: 1 << 24, Unit: "tokens", Lever: true, Group: GroupCompute, Help: "widest graph a prompt is computed in (0: 512, as llama.cpp)", pointer: func(c *Config) any { return &c.UBatchSize }},
	{Name: "cache-type-k", Dash: "ctk", Kind: Enum, Enum: kvTypes, Group: GroupCompute, Help: "type of the K cache", pointer: func(c *Config) any { return &c.CacheTypeK }},
	{Name: "cache-type-v", Dash: "ctv", Kind: Enum, Enum: kvTypes, Group: GroupCompute, Help: "type of the V cache", pointer: func(c *Config) any { return &c.CacheTypeV }},
	{Name: "flash-attn", Dash: "fa", Kind: Enum, Enum: []string{"auto", "on", "off"}, Group: GroupCompute, Help: "flash attention", pointer: func(c *Config) any { return &c.FlashAttn }},
	{Name: "n-expert-used", Kind: Int, Min: 0, Max: 4096, Unit: "experts", Lossy: true, Group: GroupCompute, Help: "experts per token (0: the model's own); changes the output", pointer: func(c *Config) any { return &c.NExpertUsed }},

	{Name: "moe-stream", Kind: Bool, No: "no-moe-stream", Group: GroupLoad, Help: "stream routed experts from the file instead of loading them", pointer: func(c *Config) any { return &c.MoeStream }},
	{Name: "load-mode", Dash: "lm", Kind: Enum, Enum: []string{"auto", "none", "mmap", "mlock", "mmap+mlock", "dio"}, Group: GroupLoad, Help: "how a resident model is loaded, as llama.cpp spells it", pointer: func(c *Config) any { return &c.LoadMode }},
	{Name: "mmap-advice", Kind: Enum, Enum: []string{"normal", "random", "sequential", "willneed"}, Group: GroupLoad, Help: "madvise of a resident model's mapping", pointer: func(c *Config) any { return &c.MmapAdvice }},
	{Name: "repack", Kind: Enum, Enum: []string{"auto", "on", "off"}, No: "no-repack", Lever: true, Group: GroupLoad, Help: "repack weights for the CPU's matmul, as stock llama.cpp does", pointer: func(c *Config) any { return &c.Repack }},
	{Name: "dense-weights", Kind: Enum, Enum: []string{"mmap", "anon", "pinned"}, Lever: true, Group: GroupLoad, Help: "where a streamed model's other weights live", pointer: func(c *Config) any { return &c.DenseWeights }},
	{Name: "release-mmap", Kind: Bool, Lever: true, Group: GroupLoad, Help: "unmap the file once the dense weights are copied", pointer: func(c *Config) any { return &c.ReleaseMmap }},

	{Name: "cache-mb", Kind: Int, Min: Auto, Max: 1 << 30, Unit: "MiB", Lever: true, Group: GroupStream, Help: "expert cache budget (auto, or 0 for none)", pointer: func(c *Config) any { return &c.CacheMB }},
	{Name: "cache-policy", Kind: Enum, Enum: CachePolicies, Lever: true, Group: GroupStream, Help: "which expert is evicted", pointer: func(c *Config) any { return &c.CachePolicy }},
	{Name: "cache-pin", Kind: Bool, Lever: true, Group: GroupStream, Help: "lock the expert cache in memory", pointer: func(c *Config) any { return &c.CachePin }},
	{Name: "cache-pin-fit", Kind: Bool, Group: GroupStream, Help: "shrink the cache to what the system lets us lock", pointer: func(c *Config) any { return &c.CachePinFit }},
	{Name: "io-threads", Kind: Int, Min: 1, Max: 64, Unit: "lanes", Lever: true, Group: GroupStream, Help: "concurrent reads of expert weights", pointer: func(c *Config) any { return &c.IOThreads }},
	{Name: "odirect", No: "no-odirect", Kind: Bool, Lever: true, Group: GroupStream, Help: "read experts past the page cache", pointer: func(c *Config) any { return &c.ODirect }},
	{Name: "overlap", No: "no-overlap", Kind: Bool, Lever: true, Group: GroupStream, Help: "read one projection while the one before it multiplies", pointer: func(c *Config) any { return &c.Overlap }},
	{Name: "expert-prefetch", No: "no-expert-prefetch", Kind: Bool, Lever: true, Group: GroupStream, Help: "with --overlap, read a likely expert of the next layer while the drive is idle", pointer: func(c *Config) any { return &c.ExpertPrefetch }},
	{Name: "prefill-slots", Kind: Int, Min: 1, Max: 2, Unit: "layers", Lever: true, Group: GroupStream, Help: "layers of experts a prompt is read into", pointer: func(c *Config) any { return &c.PrefillSlots }},
	{Name: "prefill-slots-on-demand", Kind: Bool, Group: GroupStream, Help: "hold the prefill slots only while a prompt runs, in turn with the cache", pointer: func(c *Config) any { return &c.SlotsOnDemand }},
	{Name: "route-trace", Kind: String, Group: GroupStream, Help: "write the experts each token picked to this CSV file", pointer: func(c *Config) any { return &c.RouteTrace }},

	{Name: "prefill-device", Kind: String, Lever: true, Group: GroupDevice, Help: "device that computes prompts (none: the host)", pointer: func(c *Config) any { return &c.PrefillDevice }},
	{Name: "prefill-best-effort", Kind: Bool, Group: GroupDevice, Help: "fall back to the host when the prefill device cannot be set up", pointer: func(c *Config) any { return &c.PrefillBestEffort }},
	{Name: "prefill-min-tokens", Kind: Int, Min: 1, Max: 1 << 24, Unit: "tokens", Group: GroupDevice, Help: "narrowest prompt handed to the prefill device", pointer: func(c *Config) any { return &c.PrefillMinTokens }},
	{Name: "prefill-verify", No: "no-prefill-verify", Kind: Bool, Group: GroupDevice, Help: "compare the prefill device with the host on this model before using it", pointer: func(c *Config) any { return &c.PrefillVerify }},
	{Name: "rpc", Kind: String, Group: GroupDevice, Help: "llama.cpp RPC servers, host:port[,host:port]: their devices are RPC0 and on", want: checkServers, pointer: func(c *Config) any { return &c.RPC }},
	{Name: "rpc-mb", Kind: Int, Min: 0, Max: 1 << 30, Unit: "MiB", Group: GroupDevice, Help: "most memory to use on each RPC server (0: what it reports)", pointer: func(c *Config) any { return &c.RPCMB }},
	{Name: "gpu-layers", Dash: "ngl", Alias: "n-gpu-layers", Kind: Int, Min: 0, Max: 1 << 20, Unit: "layers", Group: GroupDevice, Help: "layers placed on devices", pointer: func(c *Config) any { return &c.GPULayers }},
	{Name: "device-split", Kind: String, Group: GroupDevice, Help: "layers on each device, NAME=N[,NAME=N]", pointer: func(c *Config) any { return &c.DeviceSplit }},
	{Name: "override-tensor", Dash: "ot", Kind: String, Group: GroupDevice, Help: "tensor placement, PATTERN=BUFFER[,...], as llama.cpp", pointer: func(c *Config) any { return &c.OverrideTensor }},

	{Name: "logits-hash", Kind: Bool, Group: GroupObserve, Help: "hash the bits of every logit of every step", pointer: func(c *Config) any { return &c.LogitsHash }},
}

// Default is llama.cpp's own behaviour: resident, mapped, nothing streamed.
func Default() Config {
	return Config{
		Predict: 128, RandomTokens: -1, TopK: 40, TopP: 0.95, Temp: 0,
		CtxSize: 4096, CacheTypeK: "f16", CacheTypeV: "f16", FlashAttn: "auto",
		LoadMode: "mmap", MmapAdvice: "normal", Repack: "auto", DenseWeights: "mmap",
		CacheMB: Auto, CachePolicy: CachePolicies[0], IOThreads: 4, ODirect: true, Overlap: true, ExpertPrefetch: true,
		PrefillSlots: 1, PrefillMinTokens: 32, PrefillVerify: true,
	}
}

// Table returns the knobs in --help's order.
func Table() []Param { return slices.Clone(table) }

// Lookup finds a knob by its name.
func Lookup(name string) (*Param, bool) {
	for i := range table {
		if table[i].Name == name || (table[i].Alias != "" && table[i].Alias == name) {
			return &table[i], true
		}
	}
	return nil, false
}

// Diff returns the names of the knobs whose values differ between a and b.
func Diff(a, b *Config) []string {
	var names []string
	for i := range table {
		if table[i].Get(a) != table[i].Get(b) {
			names = append(names, table[i].Name)
		}
	}
	return names
}

// Args returns the flags that turn the default configuration into c, in table
// order: the reproduction line of a plan. Every argument is separate and
// unquoted; the caller quotes for a shell.
func Args(c *Config) []string {
	def := Default()
	var args []string
	for i := range table {
		p := &table[i]
		if p.Get(c) == p.Get(&def) {
			continue
		}
		args = append(args, p.args(c)...)
	}
	return args
}

func (p *Param) args(c *Config) []string {
	switch v := p.pointer(c).(type) {
	case *bool:
		if *v {
			return []string{p.Flag()}
		}
		return []string{"--" + p.OffFlag()}
	case *[]string:
		var out []string
		for _, s := range *v {
			out = append(out, p.Flag(), s)
		}
		return out
	}
	return []string{p.Flag(), p.Get(c)}
}

// OffFlag is the spelling, without dashes, that turns a Bool knob off.
func (p *Param) OffFlag() string {
	if p.No != "" {
		return p.No
	}
	return "no-" + p.Name
}
