package probes

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/planner"
)

const (
	capIPCLock = 14       // bit of CAP_IPC_LOCK
	lockStep   = 1 << 20  // bytes locked at a time
	lockTrial  = 16 << 20 // bytes tried where no limit is near
	owedLock   = "a lock attempt in steps from an account that may read its own limits"
)

// locker tries to lock memory. It returns how much of n was granted, having
// given all of it back.
type locker func(n int64) (granted int64, err error)

// Locks reads what this process may lock in memory, net of what it has locked
// already, and confirms it by locking a little in steps. hold bounds the
// trial: memory limits come before lock limits.
func (h *Host) Locks(hold planner.Fact[int64]) planner.LockFacts {
	return h.locks(hold, lockTest)
}

func (h *Host) locks(hold planner.Fact[int64], try locker) planner.LockFacts {
	start := h.Now()
	var f planner.LockFacts
	f.InPlace = h.lockable(hold, try)
	f.UpperBound = hold
	if n, ok := hold.Get(); ok {
		f.UpperBound = planner.DerivedFact(n, "no more can be locked than may be held")
	}
	f.Store, f.StoreBytes = storeOf(f.InPlace)
	f.SharedPool = planner.DerivedFact(true, "the reclaim-exempt store is locked memory, so both draw on one total")
	f.CacheRefused = planner.UnknownFact[int64]("no earlier run of this plan is on record", "a run with --cache-pin that is stored")
	f.DenseRefused = planner.UnknownFact[int64]("no earlier run of this plan is on record", "a run with --dense-weights pinned that is stored")
	at, cost := stamp(start), h.since(start)
	f.InPlace = f.InPlace.Timed(cost, at)
	f.Store, f.SharedPool = f.Store.Timed(0, at), f.SharedPool.Timed(0, at)
	f.StoreBytes, f.UpperBound = f.StoreBytes.Timed(0, at), f.UpperBound.Timed(0, at)
	return f
}

// storeOf says whether a reclaim-exempt allocation exists: here it is memory
// that is locked once it is filled.
func storeOf(inPlace planner.Fact[int64]) (planner.Flag, planner.Fact[int64]) {
	n, ok := inPlace.Get()
	if !ok {
		return planner.UnknownFact[bool](inPlace.Reason, owedLock), planner.UnknownFact[int64](inPlace.Reason, owedLock)
	}
	return planner.DerivedFact(n > 0, "locked anonymous memory"), planner.DerivedFact(n, inPlace.Reason)
}

// lockable is how much may be locked where it sits.
func (h *Host) lockable(hold planner.Fact[int64], try locker) planner.Fact[int64] {
	limit, limited, err := h.rlimit("Max locked memory")
	if err != nil {
		return planner.UnknownFact[int64](err.Error(), owedLock)
	}
	status, err := h.keyedFile("/proc/self/status")
	if err != nil {
		return planner.UnknownFact[int64](err.Error(), owedLock)
	}
	held, ok := status["VmLck"]
	if !ok {
		return planner.UnknownFact[int64]("/proc/self/status has no readable VmLck", owedLock)
	}
	net := max(0, limit-held)
	if !limited || h.mayIgnoreLockLimit() {
		return confirmUnlimited(hold, net, limited, try)
	}
	how := fmt.Sprintf("limit %s less %s locked", size(limit), size(held))
	bound := net
	if n, ok := hold.Get(); ok && n < bound {
		bound, how = n, how+", cut to what may be held"
	}
	granted, err := try(min(bound, lockTrial))
	return confirm(bound, granted, min(bound, lockTrial), how, err)
}

// confirmUnlimited handles an account whose locks no limit bounds: it locks a
// little more than the limit would allow, because a capability that counts for
// nothing here (in a user name space) looks the same from inside.
func confirmUnlimited(hold planner.Fact[int64], net int64, limited bool, try locker) planner.Fact[int64] {
	total, ok := hold.Get()
	if !ok {
		return planner.UnknownFact[int64]("no lock limit applies and what may be held is unknown: "+hold.Reason, owedLock)
	}
	ask, how := int64(lockTrial), "no lock limit, so what may be held is the bound"
	if limited {
		ask, how = net+lockStep, "CAP_IPC_LOCK lifts the lock limit, so what may be held is the bound"
	}
	ask = min(ask, total/4)
	granted, err := try(ask)
	if limited && granted < ask && granted <= net {
		return confirm(min(net, total), granted, ask, "CAP_IPC_LOCK is shown but not honoured", nil)
	}
	return confirm(total, granted, ask, how, err)
}

// confirm turns a bound and a trial into a fact. A trial cut short by a
// refusal is the answer; one that could not be made leaves the bound derived.
func confirm(bound, granted, asked int64, how string, err error) planner.Fact[int64] {
	switch {
	case errors.Is(err, errNoTrial):
		return planner.DerivedFact(bound, how+"; not tried: "+err.Error())
	case err != nil && granted == 0:
		return planner.UnknownFact[int64](fmt.Sprintf("%s; the first lock failed: %v", how, err), owedLock)
	case granted < asked:
		return planner.MeasuredFact(granted, 0, fmt.Sprintf("%s; refused after %s", how, size(granted)))
	}
	return planner.MeasuredFact(bound, 0, fmt.Sprintf("%s; %s locked in steps to confirm", how, size(granted)))
}

// errNoTrial says that memory could not be locked to try it, which says
// nothing about locks.
var errNoTrial = errors.New("no memory for the trial")

// mayIgnoreLockLimit reports the capability that lifts the lock limit.
func (h *Host) mayIgnoreLockLimit() bool {
	text, err := h.read("/proc/self/status")
	if err != nil {
		return false
	}
	hex, ok := colonValue(text, "CapEff")
	if !ok {
		return false
	}
	caps, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
	return err == nil && caps&(1<<capIPCLock) != 0
}
