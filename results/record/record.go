// Package record holds the ledger's entities as plain values: what a run
// document contains, what an experiment registers, what a verdict says. It
// knows no SQL, so that the harness and the reports can use it without a
// database. Ids are content ids: the sha256 of the entity's canonical JSON.
package record

import (
	"time"

	"github.com/bmoe/bmoe/engine/counters"
	"github.com/bmoe/bmoe/planner"
	"github.com/bmoe/bmoe/planner/config"
)

// RunSchema names the shape of a Run document.
const RunSchema = "bmoe.run/1"

// States a run ends in.
const (
	StateDone        = "done"
	StateFailed      = "failed"      // ended with an error
	StateKilled      = "killed"      // by a signal, the memory limit included
	StateTimeout     = "timeout"     // did not end in its time
	StateInterrupted = "interrupted" // by the caller
	StateUnstarted   = "unstarted"   // refused to start
)

// Run is the document `bmoe run --json` prints and the ledger stores.
type Run struct {
	Schema     string            `json:"schema"`
	RunID      string            `json:"run_id"`
	StartedAt  time.Time         `json:"started_at"`
	FinishedAt time.Time         `json:"finished_at"`
	State      string            `json:"state"`
	Error      string            `json:"error,omitempty"`
	ExitCode   int               `json:"exit_code"`
	Signal     string            `json:"signal,omitempty"`
	Stderr     string            `json:"stderr,omitempty"` // tail, of a run that died
	Machine    Machine           `json:"machine"`
	EnvBefore  Environment       `json:"env_before"`
	EnvAfter   Environment       `json:"env_after"`
	Build      Build             `json:"build"`
	Model      Model             `json:"model"`
	Config     config.Config     `json:"config"`
	Pins       planner.Pins      `json:"pins,omitempty"`
	Plan       *planner.Plan     `json:"plan,omitempty"`
	Prediction *Prediction       `json:"prediction,omitempty"`
	Measured   Measured          `json:"measured"`
	Stats      counters.Counters `json:"stats"`
	// Reserved sets a placement on devices against what the run then held.
	Reserved  []planner.Reservation `json:"reserved,omitempty"`
	Tokens    []int32               `json:"tokens"`
	TokenHash string                `json:"token_hash"`
	TokenNS   []int64               `json:"token_ns,omitempty"` // per decoded token
	// Of each token's time, where the engine split it: waiting for reads, and
	// looking up, choosing victims, remapping.
	TokenWaitNS   []int64  `json:"token_wait_ns,omitempty"`
	TokenManageNS []int64  `json:"token_manage_ns,omitempty"`
	Text          string   `json:"text"`
	LogitsHash    string   `json:"logits_hash,omitempty"`
	Warnings      []string `json:"warnings,omitempty"`
	Peer          *Peer    `json:"peer,omitempty"` // of a run that another program measured
}

// Peer says which other program measured a run that was imported, and what it
// said of it.
type Peer struct {
	Tool        string         `json:"tool"`
	Test        string         `json:"test"` // as that tool names it: pp512, tg128
	Repetitions int            `json:"repetitions"`
	StddevTS    float64        `json:"stddev_ts"` // of tokens per second, over the repetitions
	Row         map[string]any `json:"row,omitempty"`
}

// Prediction is a plan's prediction with the time it was written down.
type Prediction struct {
	planner.Prediction
	MadeAt    time.Time `json:"made_at"`
	Tolerance float64   `json:"tolerance,omitempty"` // as a share of the point
	Falsifier string    `json:"falsifier,omitempty"` // the measurement that would refute it
}

// Measured is what a run measured. Zero with a false Known is not printed as 0.
type Measured struct {
	DecodeSPerToken   float64 `json:"decode_s_per_token"`
	PrefillTokensPerS float64 `json:"prefill_tokens_per_s"`
	TTFTS             float64 `json:"ttft_s"`
	LoadS             float64 `json:"load_s"`
	HitRate           float64 `json:"hit_rate"` // decode lookups
	BytesPerToken     float64 `json:"bytes_per_token"`
	RSSBytes          int64   `json:"rss_bytes"` // peak
	MajorFaults       int64   `json:"major_faults"`
	DecodeTokens      int64   `json:"decode_tokens"`
	PromptTokens      int64   `json:"prompt_tokens"`
}

// Machine holds a machine's stable facts only: what is the same after a reboot
// and a kernel update.
type Machine struct {
	ID       string `json:"id"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	Threads  int    `json:"threads"`
	RAMBytes int64  `json:"ram_bytes"` // rounded to 64 MiB
	Storage  string `json:"storage"`   // model of the drive, where it says
	Label    string `json:"label,omitempty"`
}

// Environment is what may differ from run to run on one machine.
type Environment struct {
	At              time.Time `json:"at"`
	Kernel          string    `json:"kernel,omitempty"`
	MemAvailable    int64     `json:"mem_available_bytes"`
	CgroupLimit     int64     `json:"cgroup_limit_bytes"` // 0: none
	Load1           float64   `json:"load1"`
	CPUBusy         float64   `json:"cpu_busy,omitempty"` // share of all processors in use, 0 to 1
	TempC           float64   `json:"temp_c,omitempty"`
	FreqMHz         float64   `json:"freq_mhz,omitempty"`
	Governor        string    `json:"governor,omitempty"`
	THP             string    `json:"thp,omitempty"`
	PSIMem          float64   `json:"psi_mem_avg10,omitempty"`
	PSIIO           float64   `json:"psi_io_avg10,omitempty"`
	Entry           *Stalls   `json:"entry_psi,omitempty"` // just before a run; nil: not looked at
	SwapUsed        int64     `json:"swap_used_bytes"`
	CachedModelFrac float64   `json:"cached_model_frac"` // share of the model file in the page cache; -1 unknown
	ReadAheadKB     int64     `json:"read_ahead_kb,omitempty"`
	FileSystem      string    `json:"file_system,omitempty"`

	// Since the system started: what Stalls are the differences of.
	MemWaited time.Duration `json:"-"`
	IOWaited  time.Duration `json:"-"`
}

// Stalls are the shares of a moment, percent, in which some task waited for
// memory or for storage. The averages over ten seconds still hold what our own
// run before waited for; a moment in which none of ours is alive does not.
type Stalls struct {
	Mem float64 `json:"mem"`
	IO  float64 `json:"io"`
}

// Build identifies the program.
type Build struct {
	ID        string `json:"id"`
	Commit    string `json:"commit"`
	Dirty     bool   `json:"dirty"`
	Go        string `json:"go"`
	LlamaCPP  string `json:"llama_cpp"`
	CPUModule string `json:"cpu_module"`
}

// Model identifies a model by its content, never by its path.
type Model struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Arch        string `json:"arch"`
	Quant       string `json:"quant"`
	Bytes       int64  `json:"bytes"`
	Layers      int    `json:"layers"`
	Experts     int    `json:"experts"`
	ExpertsUsed int    `json:"experts_used"`
	RoutedBytes int64  `json:"routed_bytes"`
	DenseBytes  int64  `json:"dense_bytes"`
	TokenCycle  int64  `json:"token_cycle_bytes"`
}
