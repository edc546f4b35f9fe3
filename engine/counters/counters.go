// Package counters holds what a run counts while it works. It is pure data, so
// that the ledger and the reports can read it without linking the engine.
package counters

// Counters are totals since the session was opened unless they say otherwise.
// Bytes are bytes, times are seconds.
type Counters struct {
	Lookups     int64 `json:"lookups"`      // distinct (layer, expert) per batch
	Hits        int64 `json:"hits"`         // served from the cache
	Misses      int64 `json:"misses"`       // read from the file
	Evictions   int64 `json:"evictions"`    // residents given up for another
	Reads       int64 `json:"reads"`        // read requests issued to the file
	BytesRead   int64 `json:"bytes_read"`   // bytes of experts read from the file
	BytesCold   int64 `json:"bytes_cold"`   // of those, first read of the expert
	BytesReread int64 `json:"bytes_reread"` // of those, read before and evicted since

	PrefetchReads     int64 `json:"prefetch_reads"`      // of reads, begun before their layer was routed
	PrefetchReadsUsed int64 `json:"prefetch_reads_used"` // of those, of an expert that was then picked

	DecodeLookups   int64 `json:"decode_lookups"`
	DecodeHits      int64 `json:"decode_hits"`
	DecodeBytesRead int64 `json:"decode_bytes_read"`
	DecodeTokens    int64 `json:"decode_tokens"`
	PrefillTokens   int64 `json:"prefill_tokens"`

	WaitRouteS float64 `json:"wait_route_s"` // reads awaited at the routing node
	WaitGateS  float64 `json:"wait_gate_s"`
	WaitUpS    float64 `json:"wait_up_s"`
	WaitDownS  float64 `json:"wait_down_s"`
	ManageS    float64 `json:"manage_s"`   // looking up, choosing victims, remapping ids, asking for reads
	SubmitS    float64 `json:"submit_s"`   // of manage_s, asking for reads: handing them to the lanes
	ComputeS   float64 `json:"compute_s"`  // decode time that is neither wait nor management
	HookCalls  int64   `json:"hook_calls"` // routings answered

	HookResident     int64 `json:"hook_resident"`       // of those, from the slot table alone: every expert was cached
	HookInGraph      int64 `json:"hook_in_graph"`       // of those, by a call inside the graph, which was not interrupted
	HookInGraphReads int64 `json:"hook_in_graph_reads"` // of those, that had to wait for reads after all

	ComputeThreads int64 `json:"compute_threads"` // threads of the pool that decoded
	PrefillGraphs  int64 `json:"prefill_graphs"`  // graphs (micro-batches) the prompts were computed in

	ExpertsRouted int64   `json:"experts_routed"` // ids picked by the routers, duplicates included
	OverlapWaits  int64   `json:"overlap_waits"`  // waits at a projection's own matmul (pipelining)
	PrefillLayers int64   `json:"prefill_layers"` // layers that went through a prefill slot
	PrefillAhead  int64   `json:"prefill_ahead"`  // of those, read ahead into the second slot
	SlotBuilds    int64   `json:"slot_builds"`    // times the prefill slots were built
	Rebalances    int64   `json:"rebalances"`     // times memory moved between slice sizes
	CacheYielded  int64   `json:"cache_yielded_bytes"`
	RepackedBytes int64   `json:"repacked_bytes"`
	RepackS       float64 `json:"repack_s"`
	DenseRepacked int64   `json:"dense_repacked_bytes"`
	DirectReads   int64   `json:"direct_reads"`    // reads past the page cache
	BufferedReads int64   `json:"buffered_reads"`  // reads through it
	Lanes         int64   `json:"lanes"`           // workers that served at least one read
	BytesToDevice int64   `json:"bytes_to_device"` // of picked experts, copied for prompts

	DevicePlacedBytes   int64 `json:"device_placed_bytes"`   // of weights that lie on devices
	DeviceReservedBytes int64 `json:"device_reserved_bytes"` // held there: those, context, buffers
	HostContextBytes    int64 `json:"host_context_bytes"`    // of the context in host memory
	HostComputeBytes    int64 `json:"host_compute_bytes"`    // of compute buffers there

	CacheBudgetBytes     int64 `json:"cache_budget_bytes"`
	CacheResidentBytes   int64 `json:"cache_resident_bytes"`
	CacheLockedBytes     int64 `json:"cache_locked_bytes"`
	CachePinRefusedBytes int64 `json:"cache_pin_refused_bytes"`
	DenseBytes           int64 `json:"dense_bytes"`
	DenseCopiedBytes     int64 `json:"dense_copied_bytes"` // of those, copied out of the mapping
	DenseLockedBytes     int64 `json:"dense_locked_bytes"`
	DensePinRefusedBytes int64 `json:"dense_pin_refused_bytes"`
	MmapReleasedBytes    int64 `json:"mmap_released_bytes"`
	MmapRandomBytes      int64 `json:"mmap_random_bytes"` // mapping advised MADV_RANDOM

	MajorFaults int64 `json:"major_faults"`
	RSSBytes    int64 `json:"rss_bytes"`      // now
	PeakRSS     int64 `json:"peak_rss_bytes"` // highest seen
}

// HitRate is the share of decode lookups served from the cache, and false when
// there were none.
func (c *Counters) HitRate() (float64, bool) {
	if c.DecodeLookups == 0 {
		return 0, false
	}
	return float64(c.DecodeHits) / float64(c.DecodeLookups), true
}
