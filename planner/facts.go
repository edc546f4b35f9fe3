package planner

import "fmt"

// entry names one fact of a profile: the name `bmoe probe` prints.
type entry struct {
	name string
	unit string
	fact anyFact
}

const (
	bytesUnit = "bytes"
	rateUnit  = "bytes/s"
	secUnit   = "s"
)

// entries lists every fact of p in the order it is printed.
func (p *Profile) entries() []entry {
	var list []entry
	list = append(list, p.Model.entries()...)
	list = append(list, p.Memory.entries()...)
	list = append(list, p.Locks.entries()...)
	list = append(list, p.Cores.entries()...)
	list = append(list, p.Host.entries()...)
	list = append(list, p.Backends.entries()...)
	for i := range p.Devices {
		list = append(list, p.Devices[i].entries()...)
	}
	list = append(list, p.Placement.entries()...)
	list = append(list, p.Buffers.entries()...)
	list = append(list, p.Storage.entries()...)
	list = append(list, p.Overheads.entries()...)
	list = append(list, p.Hits.entries()...)
	return list
}

// Facts returns every fact as a printable line, unknown ones included.
func (p *Profile) Facts() []FactLine {
	list := p.entries()
	lines := make([]FactLine, len(list))
	for i, e := range list {
		lines[i] = e.fact.line(e.name, e.unit)
	}
	return lines
}

// SetFact gives the fact of that name a measured value written as JSON: how
// synthetic machines and recorded facts are read back. A device's facts need
// the device to be in p.Devices.
func (p *Profile) SetFact(name string, value []byte) error {
	for _, e := range p.entries() {
		if e.name == name {
			if err := e.fact.setJSON(value); err != nil {
				return fmt.Errorf("fact %s: %w", name, err)
			}
			return nil
		}
	}
	return fmt.Errorf("fact %s: there is no such fact", name)
}

func (m *ModelFacts) entries() []entry {
	return []entry{
		{"model.arch", "", &m.Arch},
		{"model.layers", "layers", &m.Layers},
		{"model.moe-layers", "layers", &m.MoeLayers},
		{"model.experts", "experts", &m.Experts},
		{"model.experts-used", "experts", &m.ExpertsUsed},
		{"model.train-ctx", "tokens", &m.TrainCtx},
		{"model.file", bytesUnit, &m.FileBytes},
		{"model.routed", bytesUnit, &m.RoutedBytes},
		{"model.token-cycle", bytesUnit, &m.TokenCycle},
		{"model.dense-read", bytesUnit, &m.DenseRead},
		{"model.dense-row", bytesUnit, &m.DenseRow},
		{"model.dense-idle", bytesUnit, &m.DenseIdle},
		{"model.slices", "", &m.Slices},
		{"model.quants", "", &m.Quants},
		{"model.layer-experts", bytesUnit, &m.LayerExperts},
		{"model.layer-other", bytesUnit, &m.LayerOther},
		{"model.tied-head", "", &m.TiedHead},
		{"model.head-table", bytesUnit, &m.HeadTable},
		{"model.mtp-used", "", &m.MTPUsed},
		{"model.k-elems", "numbers/token", &m.KElems},
		{"model.v-elems", "numbers/token", &m.VElems},
		{"model.expert-file", "", &m.ExpertFile},
	}
}

func (m *MemoryFacts) entries() []entry {
	return []entry{
		{"memory.total", bytesUnit, &m.Total},
		{"memory.holdable", bytesUnit, &m.Holdable},
		{"memory.available", bytesUnit, &m.Available},
		{"memory.limit", bytesUnit, &m.LimitBytes},
		{"memory.limit-headroom", bytesUnit, &m.LimitHeadroom},
		{"memory.reclaim", "", &m.Reclaim},
		{"memory.swap-free", bytesUnit, &m.SwapFree},
		{"memory.headroom-estimate", bytesUnit, &m.Estimate},
		{"memory.headroom-measured", bytesUnit, &m.Headroom},
		{"memory.page-size", bytesUnit, &m.PageSize},
		{"memory.overcommit", "", &m.Overcommit},
	}
}

func (l *LockFacts) entries() []entry {
	return []entry{
		{"locks.store", "", &l.Store},
		{"locks.store-bytes", bytesUnit, &l.StoreBytes},
		{"locks.in-place", bytesUnit, &l.InPlace},
		{"locks.upper-bound", bytesUnit, &l.UpperBound},
		{"locks.shared-pool", "", &l.SharedPool},
		{"locks.cache-refused", bytesUnit, &l.CacheRefused},
		{"locks.dense-refused", bytesUnit, &l.DenseRefused},
	}
}

func (c *CoreFacts) entries() []entry {
	return []entry{
		{"cores.classes", "", &c.Classes},
		{"cores.physical", "cores", &c.Physical},
		{"cores.numa", "nodes", &c.NUMA},
		{"cores.governor", "", &c.Governor},
		{"cores.temperature", "C", &c.TempC},
		{"cores.frequency", "MHz", &c.FreqMHz},
	}
}

func (h *HostFacts) entries() []entry {
	return []entry{
		{"host.narrow", rateUnit, &h.Narrow},
		{"host.wide", rateUnit, &h.Wide},
		{"host.narrow-repack", rateUnit, &h.NarrowRepack},
		{"host.wide-repack", rateUnit, &h.WideRepack},
		{"host.dense", rateUnit, &h.Dense},
		{"host.dense-repack", rateUnit, &h.DenseRepack},
		{"host.copy", rateUnit, &h.CopyRate},
	}
}

func (b *BackendFacts) entries() []entry {
	return []entry{
		{"backends.looked", "", &b.Looked},
		{"backends.linked", "backends", &b.Linked},
		{"backends.loaded", "backends", &b.Loaded},
	}
}

func (d *Device) entries() []entry {
	at := "device." + d.Name + "."
	return []entry{
		{at + "usable", "", &d.Usable},
		{at + "host-memory", "", &d.HostMemory},
		{at + "host-buffer", "", &d.HostBuffer},
		{at + "host-ptr-buffers", "", &d.HostPtr},
		{at + "host-ptr-honoured", "", &d.HostPtrHonour},
		{at + "needs-repack", "", &d.NeedsRepack},
		{at + "runs-expert-op", "", &d.RunsExpertOp},
		{at + "buffers-exempt", "", &d.BuffersExempt},
		{at + "identity-ok", "", &d.Identity},
		{at + "identity-wide-ok", "", &d.IdentityWide},
		{at + "places-layers", "", &d.Places},
		{at + "takes-full-layers", "", &d.TakesFullIDs},
		{at + "sets-up", "", &d.SetsUp},
		{at + "nmse", "", &d.NMSE},
		{at + "nmse-wide", "", &d.NMSEWide},
		{at + "narrow", rateUnit, &d.Narrow},
		{at + "wide", rateUnit, &d.Wide},
		{at + "copy", rateUnit, &d.CopyRate},
		{at + "free", bytesUnit, &d.FreeBytes},
		{at + "total", bytesUnit, &d.TotalBytes},
		{at + "split", secUnit, &d.SplitSeconds},
		{at + "compute", "", &d.Compute},
	}
}

func (p *PlacementFacts) entries() []entry {
	return []entry{
		{"placement.asked", "", &p.Asked},
		{"placement.gpu-layers", "layers", &p.GPULayers},
		{"placement.shares", "", &p.Shares},
		{"placement.overrides", "", &p.Overrides},
		{"placement.host-experts", bytesUnit, &p.HostExperts},
		{"placement.host-dense", bytesUnit, &p.HostDense},
		{"placement.host-context", bytesUnit, &p.HostContext},
		{"placement.host-compute", bytesUnit, &p.HostCompute},
		{"placement.width", "tokens", &p.Width},
		{"placement.split-ffn", "", &p.SplitFFN},
	}
}

func (b *BufferFacts) entries() []entry {
	return []entry{
		{"buffers.context", bytesUnit, &b.Context},
		{"buffers.compute", "", &b.Compute},
	}
}

func (s *StorageFacts) entries() []entry {
	return []entry{
		{"storage.rate", rateUnit, &s.Curve},
		{"storage.refault", rateUnit, &s.Refault},
		{"storage.odirect", "", &s.ODirect},
		{"storage.buffered", rateUnit, &s.Buffered},
		{"storage.mapping-serialises", "", &s.MapSerialises},
		{"storage.rate-mapped", rateUnit, &s.RateMapped},
		{"storage.rate-unmapped", rateUnit, &s.RateUnmapped},
		{"storage.align", bytesUnit, &s.Align},
		{"storage.drift", "", &s.Drift},
		{"storage.file-system", "", &s.FileSystem},
		{"storage.deciding-sample", bytesUnit, &s.DecidingSample},
	}
}

func (o *OverheadFacts) entries() []entry {
	return []entry{
		{"overhead.per-lookup", secUnit, &o.PerLookup},
		{"overhead.per-layer", secUnit, &o.PerLayer},
		{"overhead.per-node", secUnit, &o.PerNode},
		{"overhead.nodes", "nodes", &o.Nodes},
		{"overhead.per-read", secUnit, &o.PerRead},
		{"overhead.repack", rateUnit, &o.RepackRate},
		{"overhead.reads", "times", &o.ReadsScale},
		{"overhead.fill", "s/byte", &o.Fill},
		{"overhead.resident", secUnit, &o.Resident},
		{"overhead.prefill", "times", &o.Prefill},
		{"overhead.residual", "", &o.Residual},
	}
}

func (h *HitFacts) entries() []entry {
	return []entry{
		{"hits.curves", "", &h.Curves},
		{"hits.fit", "", &h.Fit},
	}
}
