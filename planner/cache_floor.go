package planner

import "fmt"

// applyFloor turns the cache off where it cannot return a hit, and lets the
// model's own token cycle overrule the generic smallest size. Under the floor
// the experts stream uncached, if the drive's rate says that this beats the
// mapping; without a rate there is no price and the plan declines.
func (st *planning) applyFloor() {
	if !st.stream || !st.cache.known {
		return
	}
	if st.pinned("cache-mb") && st.cfg.CacheMB >= 0 {
		st.disabled("cache-floor", "cache-mb")
		st.warnPinnedCache()
		return
	}
	priced := st.ioPriced()
	switch {
	case st.cache.bytes >= st.m.cycle || st.cache.bytes == st.m.whole():
		st.cacheAboveFloor()
	case !priced && !st.pinned("moe-stream"):
		st.decline(fmt.Sprintf("%s is left for the cache, under the token cycle of %s, and the drive's read rate was never measured, so streaming without a cache has no price", size(st.cache.left), size(st.m.cycle)))
	case st.hasCliff() || st.cache.bytes < st.floor():
		st.cacheOff()
	default:
		st.decideCache("cache-under-cycle", Derived,
			fmt.Sprintf("A cache of %s; one token needs %s, but what is kept by score still serves some of it.", size(st.cache.bytes), size(st.m.cycle)),
			fmt.Sprintf("%s. %s has no cliff at the token cycle, and a hit saves a read the drive was measured to need", st.cacheReason(), st.cfg.CachePolicy))
	}
}

func (st *planning) cacheAboveFloor() {
	prov := st.hold.prov
	brief := fmt.Sprintf("A cache of %s, %s of the experts.", size(st.cache.bytes), percent(float64(st.cache.bytes)/float64(max(1, st.m.whole()))))
	st.decideCache("cache", prov, brief, st.cacheReason())
	if st.cache.bytes < st.pol.CacheMinBytes && st.cache.bytes < st.m.whole() {
		st.note("cache-floor", size(st.cache.bytes), Derived,
			fmt.Sprintf("A small cache, but one token of this model needs only %s.", size(st.m.cycle)),
			fmt.Sprintf("the generic smallest cache is %s; this model's token cycle is %s, so a smaller one is not pathological and the plan goes past it", size(st.pol.CacheMinBytes), size(st.m.cycle)))
	}
}

func (st *planning) cacheOff() {
	if st.cache.left < st.m.batch && !st.pinned("moe-stream") {
		st.decline(fmt.Sprintf("%s is left, and the experts one token picks in one layer take %s", size(max(0, st.cache.left)), size(st.m.batch)))
		return
	}
	st.disarmLock()
	st.cache.bytes, st.cache.staging = 0, st.m.batch
	why := fmt.Sprintf("%s is left for it, under the %s below which %s returns no hits", size(st.cache.left), size(st.floor()), st.cfg.CachePolicy)
	st.decideCache("cache-off", Derived,
		fmt.Sprintf("No cache: one token needs %s and only %s is left.", size(st.m.cycle), size(max(0, st.cache.left))),
		why+"; the memory would buy nothing, so the experts are read for every token")
}

// warnPinnedCache says what a size the caller fixed runs into, and keeps it.
func (st *planning) warnPinnedCache() {
	if st.cache.bytes == 0 {
		st.cache.staging = st.m.batch
		return
	}
	if st.hasCliff() && st.cache.bytes < st.m.cycle {
		st.note("cache-floor", size(st.cache.bytes), Operator,
			fmt.Sprintf("Your cache of %s returns no hits: one token needs %s.", size(st.cache.bytes), size(st.m.cycle)),
			fmt.Sprintf("%s is under the token cycle and %s evicts what the same token still needs; kept, because the caller set it", flagOf("cache-mb"), st.cfg.CachePolicy))
	}
	if st.cache.bytes > st.cache.left {
		st.note("over-budget", size(st.cache.bytes-st.cache.left), Operator,
			fmt.Sprintf("Your cache is %s more than may be held.", size(st.cache.bytes-st.cache.left)),
			fmt.Sprintf("%s is left under the ceiling and %s asks for %s; kept, because the caller set it", size(max(0, st.cache.left)), flagOf("cache-mb"), size(st.cache.bytes)))
	}
}
