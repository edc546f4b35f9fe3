package planner

import (
	"fmt"
	"math"
)

// cacheChoice is the expert cache.
type cacheChoice struct {
	known   bool  // sized here or by the caller
	bytes   int64 // 0: uncached
	left    int64 // what the budget leaves for it
	locked  int64 // of bytes, counted as locked in place
	flat    int64 // the size the measured curve is flat from; 0: it was not reached
	request bool  // a lock is asked for at run time and not counted
	staging int64 // slots one layer's picks are read into without a cache
}

// floor is the smallest cache that returns hits: the token cycle for a policy
// with a cliff, one layer's picks for one without.
func (st *planning) floor() int64 {
	if st.hasCliff() {
		return st.m.cycle
	}
	return max(st.m.batch, 1)
}

// leftForCache is what may be held less every other row.
func (st *planning) leftForCache() int64 {
	left := st.hold.usable - st.buffers.held() - st.dense.held - st.device.held
	if st.slotsHeldByPin() {
		left -= int64(st.cfg.PrefillSlots) * st.m.layer
	}
	return left
}

// slotsHeldByPin reports whether the caller wants the prefill slots kept for
// the whole session.
func (st *planning) slotsHeldByPin() bool {
	return st.pinned("prefill-slots-on-demand") && !st.cfg.SlotsOnDemand
}

// sizeCache gives the cache what is left under both ceilings, never more than
// the experts themselves.
func (st *planning) sizeCache(*allocation) {
	st.cache.left = st.leftForCache()
	if st.cfg.CacheMB >= 0 && st.pinned("cache-mb") {
		st.cache.known, st.cache.bytes = true, min(int64(st.cfg.CacheMB)*mib, st.m.whole())
		st.lockCache()
		return
	}
	st.cache.known = true
	st.cache.bytes = min(max(0, st.cache.left), st.m.whole())
	if useful := st.useful(st.cache.bytes); useful < st.cache.bytes {
		st.cache.bytes, st.cache.flat = useful, useful
	}
	st.lockCache()
	st.cache.bytes = roundCache(st.cache.bytes, st.m.whole())
	st.cache.locked = min(st.cache.locked, st.cache.bytes)
}

// useful is the smallest size with the hits of the size given: what lies on a
// flat part of the measured curve would hold memory and save no read. Where
// every expert fits none is ever read twice, whatever the curve has seen.
func (st *planning) useful(bytes int64) int64 {
	points, _, ok := st.curve()
	if !ok || bytes >= st.m.whole() {
		return bytes
	}
	best := bytes
	for _, p := range points {
		at := cacheMB(int64(math.Ceil(float64(p.Bytes)*st.m.pad))) * mib
		if at = max(at, st.m.cycle); at < best && st.hitRate(at).Point >= st.hitRate(bytes).Point {
			best = at
		}
	}
	return best
}

// roundCache rounds to whole MiB, as the knob says sizes: up where every
// expert fits, so that none is left out for part of a MiB, down otherwise.
func roundCache(bytes, whole int64) int64 {
	if bytes == whole {
		return whole
	}
	return wholeMiB(bytes)
}

// cacheMB is the knob's value for a cache.
func cacheMB(bytes int64) int64 { return (bytes + mib - 1) / mib }

// decideCache writes the size down.
func (st *planning) decideCache(topic string, prov Provenance, brief, reason string) {
	st.decide("cache-mb", itoa(cacheMB(st.cache.bytes)), Decision{Provenance: prov, Topic: topic, Brief: brief, Reason: reason})
}

// cacheReason is the account of a cache's size.
func (st *planning) cacheReason() string {
	text := fmt.Sprintf("%s may be held; buffers take %s, other weights %s", size(st.hold.usable), size(st.buffers.held()), size(st.dense.held))
	if st.device.held > 0 {
		text += ", the prefill device " + size(st.device.held)
	}
	if st.cache.bytes == st.m.whole() {
		return text + fmt.Sprintf("; all experts fit, %s as they are read", size(st.m.whole()))
	}
	if st.cache.bytes == st.cache.flat {
		return text + fmt.Sprintf("; %s is left, but the measured hit rate is flat from %s on", size(st.cache.left), size(st.cache.bytes))
	}
	if st.cache.locked > 0 && st.cache.bytes < wholeMiB(st.cache.left) {
		return text + fmt.Sprintf("; of the %s left, %s can be locked in place", size(st.cache.left), size(st.cache.locked))
	}
	return text + fmt.Sprintf("; %s is left, against a token cycle of %s", size(st.cache.left), size(st.m.cycle))
}
