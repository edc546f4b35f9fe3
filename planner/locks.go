package planner

// lockView is what may be held where the kernel cannot take it, after the
// margin: others draw on the same total between the plan and the load.
type lockView struct {
	store      Tri // a reclaim-exempt allocation exists
	storeKnown bool
	storeBytes int64
	inKnown    bool // the in-place ceiling was measured
	inBytes    int64
	shared     bool // both draw on one total
	ruledOut   bool // a bound known anyway leaves no token cycle
}

func (st *planning) viewLocks() lockView {
	l := &st.p.Locks
	v := lockView{store: Ask(l.Store), shared: Ask(l.SharedPool) != No}
	if total, ok := l.StoreBytes.Get(); ok {
		v.storeKnown = true
		v.storeBytes = max(0, total-scale(total, st.pol.LockMargin)-l.DenseRefused.Or(0))
	} else if l.DenseRefused.Or(0) > 0 {
		v.store = No // it ran out before, and nothing says how much there is
	}
	if total, ok := l.InPlace.Get(); ok {
		v.inKnown = true
		v.inBytes = max(0, total-scale(total, st.pol.LockMargin)-l.CacheRefused.Or(0))
	}
	if v.shared && v.inKnown && !v.storeKnown {
		v.storeKnown, v.storeBytes = true, v.inBytes // one total, stated once
	}
	if bound, ok := l.UpperBound.Get(); ok {
		bound -= scale(bound, st.pol.LockMargin)
		v.ruledOut = bound < st.m.cycle
		if v.inKnown {
			v.inBytes = min(v.inBytes, bound)
		}
		if v.storeKnown && v.shared {
			v.storeBytes = min(v.storeBytes, bound)
		}
	}
	return v
}

// holdsDense reports whether the store takes the dense set whole.
func (v *lockView) holdsDense(dense int64) bool {
	return v.store == Yes && (!v.storeKnown || dense <= v.storeBytes)
}
