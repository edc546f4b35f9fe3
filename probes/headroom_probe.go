package probes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bmoe/bmoe/planner"
)

const (
	holdStepMin = 16 << 20
	holdStepMax = 256 << 20
	marginMin   = 64 << 20 // bytes left alone under any limit

	owedHold = "the same probe with --mem"
)

// HoldFlag is the hidden flag of `bmoe probe` that makes it the child which
// holds memory.
const HoldFlag = "hold"

// margin is what a measurement leaves under a limit: a twentieth, at least
// marginMin, and never more than half of a small one.
func margin(limit int64) int64 { return min(limit/2, max(limit/20, marginMin)) }

// holdCeiling is how much a measurement may hold at most: never past a limit
// less its margin; and where pressure ends processes instead of compressing,
// never past what is available either.
func (h *Host) holdCeiling(r memoryReading, kind planner.Reclaim) (int64, string, error) {
	if r.limits.problem != nil {
		return 0, "", r.limits.problem
	}
	avail, ok := available(r).Get()
	if !ok {
		return 0, "", errors.New("what is available is unknown")
	}
	total := r.meminfo["MemTotal"]
	ceiling, what := avail-margin(total), "what is available runs out"
	if kind == planner.ReclaimCompress || kind == planner.ReclaimSwap {
		ceiling += min(r.meminfo["Inactive(anon)"], r.meminfo["SwapFree"], r.limits.swapRoom)
		what = "others have nothing left to give"
	}
	for _, l := range r.limits.all {
		if room := l.Free() - margin(l.Bytes); room < ceiling {
			ceiling, what = room, l.Name
		}
	}
	return max(0, ceiling), what, nil
}

// probeHeadroom measures what can be held and kept, in a process of its own
// where there is a way to start one.
func (c *composition) probeHeadroom(ctx context.Context) {
	if !c.opts.Mem {
		return
	}
	kind := c.profile.Memory.Reclaim
	if !kind.OK() {
		c.profile.Memory.Headroom = planner.UnknownFact[int64]("what a reclaim does here is unknown, so holding memory is not safe: "+kind.Reason, owedHold)
		return
	}
	var fact planner.Fact[int64]
	cost, at := c.host.timed(func() { fact = c.host.headroom(ctx, kind.Value, c.opts.Hold) })
	c.profile.Memory.Headroom = fact.Timed(cost, at)
}

func (h *Host) headroom(ctx context.Context, kind planner.Reclaim, child Child) planner.Fact[int64] {
	ceiling, what, err := h.holdCeiling(h.readMemory(), kind)
	if err != nil {
		return planner.UnknownFact[int64](err.Error(), owedHold)
	}
	if ceiling < holdStepMin {
		return planner.UnknownFact[int64](fmt.Sprintf("only %s may be held before %s: less than one step", size(ceiling), what), owedHold)
	}
	p := holdPlan{Ceiling: ceiling, Step: min(holdStepMax, max(holdStepMin, ceiling/64)), Pause: 10 * time.Millisecond}
	var r holdResult
	if child == nil {
		r, err = h.holdHere(ctx, p, kind, nil)
	} else {
		r, err = holdElsewhere(ctx, child, p, kind)
	}
	if err != nil {
		return planner.UnknownFact[int64](err.Error(), owedHold)
	}
	if r.Held == 0 {
		return planner.UnknownFact[int64]("nothing could be kept: "+r.Reason, owedHold)
	}
	how := fmt.Sprintf("held in steps of %s and kept whole; %s", size(p.Step), r.Reason)
	if r.Held >= ceiling {
		how += fmt.Sprintf(" (the ceiling stands before %s)", what)
	}
	return planner.MeasuredFact(r.Held, 0, how)
}

// holdHere holds in this process, watching what the limits leave as it goes.
func (h *Host) holdHere(ctx context.Context, p holdPlan, kind planner.Reclaim, told func(int64)) (holdResult, error) {
	m, err := newHolder(h)
	if err != nil {
		return holdResult{}, err
	}
	room := func() (int64, string) {
		left, what, err := h.holdCeiling(h.readMemory(), kind)
		if err != nil {
			return 0, err.Error()
		}
		return left, what
	}
	return holdInSteps(ctx, m, p, room, told)
}

// holdOrder is what the child is told to do.
type holdOrder struct {
	Plan holdPlan        `json:"plan"`
	Kind planner.Reclaim `json:"kind"`
}

// holdElsewhere holds in a child. One that is ended for holding too much has
// told how far it came.
func holdElsewhere(ctx context.Context, child Child, p holdPlan, kind planner.Reclaim) (holdResult, error) {
	order, err := json.Marshal(holdOrder{p, kind})
	if err != nil {
		return holdResult{}, err
	}
	out, err := child(ctx, []string{"probe", "--" + HoldFlag + "=" + string(order)})
	var died *ChildError
	if err != nil && !errors.As(err, &died) {
		return holdResult{}, err
	}
	r, ok := lastResult(out)
	if !ok && died != nil {
		return r, died
	}
	if died != nil {
		r.Reason = died.Error()
	}
	return r, nil
}

// lastResult is the last whole line a holding child printed.
func lastResult(out []byte) (holdResult, bool) {
	var last holdResult
	found := false
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		var r holdResult
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			last, found = r, true
		}
	}
	return last, found
}

// HoldChild is the child's side of a headroom measurement: it holds what order
// says, prints a line for every step it kept and one for the end, and stops
// when in closes, which is when its parent is gone.
func HoldChild(ctx context.Context, order string, in io.Reader, out io.Writer) error {
	var o holdOrder
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		return fmt.Errorf("--%s: %w", HoldFlag, err)
	}
	if o.Plan.Step < holdStepMin || o.Plan.Ceiling < 0 {
		return fmt.Errorf("--%s: steps of %s are too small", HoldFlag, size(o.Plan.Step))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	if err := offerSelf(); err != nil {
		return err
	}
	w := json.NewEncoder(out)
	r, err := Local().holdHere(ctx, o.Plan, o.Kind, func(held int64) { _ = w.Encode(holdResult{Held: held}) })
	if err != nil {
		return err
	}
	return w.Encode(r)
}
