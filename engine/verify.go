package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bmoe/bmoe/engine/device"
	"github.com/bmoe/bmoe/planner/config"
)

const (
	verifyTokens    = 64 // or the device's narrowest graph, where that is wider
	verifyPositions = 31
	verifyShare     = 0.9 // of the positions that must agree on the next token
)

// verifyText is prefilled on both sides. It only has to be ordinary text.
const verifyText = `A lighthouse keeper counts the ships that pass at night. In autumn there are many, ` +
	`because the harbour towns send out grain before the ice comes; in winter there are few, and he reads. ` +
	`Once a month a boat brings oil, bread and letters. He answers each letter on the same evening, since the ` +
	`boat leaves in the morning, and then climbs the stairs to trim the lamp. `

// outputsFor is how many positions' logits the context must be able to give.
func (s *Session) outputsFor() int {
	if s.device != nil && s.cfg.PrefillVerify {
		return verifyPositions
	}
	return 1
}

// checkDevice prefills a fixed text on the host and on the device and keeps the
// device if they agree on the next token nearly everywhere. Logits further off
// than a backend's may be are for the caller to accept: on best effort, which a
// plan sets for a device of its own choice, the host is used instead. A check
// that cannot be made is no evidence against the device.
func (s *Session) checkDevice(ctx context.Context) error {
	if s.device == nil || !s.cfg.PrefillVerify {
		return nil
	}
	tokens, why := s.verifyPrompt()
	if why != "" {
		s.notes = append(s.notes, fmt.Sprintf("device %s was not compared with the host: %s", s.device.name, why))
		return nil
	}
	at := make([]bool, len(tokens))
	for i := range verifyPositions {
		at[(i+1)*len(tokens)/verifyPositions-1] = true
	}
	if err := s.stream.Rehearse(true); err != nil {
		return err
	}
	host, hostS, err := s.nextTokens(ctx, tokens, at, false)
	if err != nil {
		return err
	}
	dev, devS, err := s.nextTokens(ctx, tokens, at, true)
	if err != nil {
		return err
	}
	s.Clear()
	if err := s.stream.Rehearse(false); err != nil {
		return err
	}
	agree, nmse, middle := compare(host, dev)
	s.notes = append(s.notes, fmt.Sprintf("device %s agrees with the host on %d of %d next tokens, NMSE of the logits %.2g, of the median position %.2g (%d tokens: host %.2f s, device %.2f s)", s.device.name, agree, len(host), nmse, middle, len(tokens), hostS, devS))
	if float64(agree) < verifyShare*float64(len(host)) {
		return fmt.Errorf("it computes something else than the host: %d of %d next tokens agree, %.0f %% must (--no-prefill-verify skips this check)", agree, len(host), 100*verifyShare)
	}
	if nmse > config.MaxNMSE {
		if s.cfg.PrefillBestEffort {
			return fmt.Errorf("its logits differ from the host's by an NMSE of %.2g, %.2g is allowed; --prefill-device %s without --prefill-best-effort uses it all the same", nmse, config.MaxNMSE, s.device.name)
		}
		s.notes = append(s.notes, fmt.Sprintf("device %s is used because it was asked for: its logits differ from the host's by more than %.2g, and text may; --prefill-device none gives the host's", s.device.name, config.MaxNMSE))
	}
	return nil
}

// verifyPrompt is the text to compare on, or why there is none.
func (s *Session) verifyPrompt() (tokens []int32, why string) {
	want := max(verifyTokens, s.device.least)
	if want > s.ubatch || want > s.ctx.Size() {
		return nil, fmt.Sprintf("that takes a graph of %d tokens, and this run computes at most %d at once; --ubatch %d would let it", want, min(s.ubatch, s.ctx.Size()), want)
	}
	text, err := s.model.Tokenize(verifyText, true, false)
	if err != nil || len(text) < verifyPositions {
		return nil, "the vocabulary does not spell the text it is compared on"
	}
	for len(tokens) < want {
		tokens = append(tokens, text[:min(len(text), want-len(tokens))]...)
	}
	return tokens, ""
}

// compare counts the positions whose top next token is the same, and takes the
// error of all logits as llama.cpp's own backend tests do. The median position
// tells arithmetic from routing: where a near tie in a router falls the other
// way, a few positions carry nearly all of the error.
func compare(host, dev [][]float32) (agree int, nmse, middle float64) {
	each := make([]float64, len(host))
	for i := range host {
		if top(host[i]) == top(dev[i]) {
			agree++
		}
		each[i] = device.NMSE(host[i], dev[i])
	}
	slices.Sort(each)
	return agree, device.NMSE(slices.Concat(host...), slices.Concat(dev...)), each[len(each)/2]
}

// nextTokens prefills on one side and returns the logits of each wanted
// position, and the seconds it took.
func (s *Session) nextTokens(ctx context.Context, tokens []int32, at []bool, device bool) ([][]float32, float64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	s.Clear()
	s.hook.Abort(false)
	s.stream.Reset()
	if err := s.planDevice(device); err != nil {
		return nil, 0, err
	}
	s.stream.OnDevice(device)
	remap, err := s.stream.Begin(len(tokens), true)
	if err != nil {
		return nil, 0, err
	}
	s.hook.Mode(remap, s.cfg.Overlap, device)
	began := time.Now()
	err = s.ctx.DecodeAt(tokens, at)
	s.hook.Settle()
	if lost := s.device.lost(); lost != nil {
		return nil, 0, lost
	}
	if serr := s.stream.Err(); serr != nil {
		return nil, 0, serr
	}
	if err != nil {
		return nil, 0, err
	}
	var out [][]float32
	for i, wanted := range at {
		if wanted {
			out = append(out, slices.Clone(s.ctx.LogitsAt(i)))
		}
	}
	return out, time.Since(began).Seconds(), nil
}

func top(logits []float32) int32 {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	return int32(best)
}
