package planner

import (
	"math"
	"strings"
	"testing"
)

// TestWorkedCases checks the figures of machines that were measured elsewhere
// against the plans made from their facts, apart from the expected text, which
// -update rewrites.
func TestWorkedCases(t *testing.T) {
	cycle := int64(609484800) // 581 MiB, as the engine computed from the tensors it bound
	for name, check := range map[string]func(*testing.T, Plan){
		"worked-laptop-3gb-lru": func(t *testing.T, p Plan) {
			wantKnobs(t, p, "moe-stream", "true", "cache-mb", "0")
			wantAbout(t, "bytes per token", p.Prediction.BytesPerToken.Point, float64(cycle), 0.001)
			wantAbout(t, "seconds per token", p.Prediction.DecodeSPerToken.Point, 0.1165, 0.20) // 95 ms predicted there, 138 measured
		},
		"worked-laptop-3gb": func(t *testing.T, p Plan) {
			wantKnobs(t, p, "moe-stream", "true")
			wantTopic(t, p, "cache-under-cycle")
			if mb := p.Config.CacheMB; mb <= 0 || int64(mb)*mib >= cycle {
				t.Errorf("cache %d MiB, want some under a cycle", mb)
			}
		},
		"worked-laptop-3gb-unmeasured-drive": func(t *testing.T, p Plan) {
			if !p.Declined || p.Config.MoeStream {
				t.Errorf("declined %v, streams %v: a stream without a price must decline", p.Declined, p.Config.MoeStream)
			}
			for _, r := range p.Ledger {
				if r.Row == "expert cache" || r.Row == "other weights" {
					t.Errorf("a declined plan holds %s", r.Row)
				}
			}
		},
		"worked-laptop-8.9gb": func(t *testing.T, p Plan) {
			wantAbout(t, "cache GiB", float64(p.Config.CacheMB)/1024, 5.9, 0.01)
			wantKnobs(t, p, "ubatch", "1024", "dense-weights", "pinned", "cache-pin", "true", "cache-pin-fit", "true")
		},
		"worked-laptop-estimate": func(t *testing.T, p Plan) {
			wantAbout(t, "cache GiB", float64(p.Config.CacheMB)/1024, 2.2, 0.12) // about 2 GB instead of none
		},
		"worked-laptop-gpu": func(t *testing.T, p Plan) {
			wantKnobs(t, p, "prefill-device", "GPU0", "prefill-best-effort", "true", "prefill-slots", "2", "prefill-slots-on-demand", "true")
			wantAbout(t, "what stays, MiB", float64(ledger(p, "prefill device", CeilingHoldable))/float64(mib), 530, 0.06)
			wantAbout(t, "slots in turn, MiB", float64(ledger(p, "prefill slots", CeilingInTurn))/float64(mib), 996, 0.01)
		},
		"worked-91gb-lock": func(t *testing.T, p Plan) {
			wantKnobs(t, p, "dense-weights", "pinned", "cache-pin", "true", "cache-pin-fit", "true")
			wantAbout(t, "cache GB", float64(p.Config.CacheMB)*float64(mib)/1e9, 3.2, 0.02)
			wantAbout(t, "lockable MiB", float64(ledger(p, "may be locked", CeilingLimit))/float64(mib), 10368*0.95, 0.001)
		},
		"worked-91gb-gpu-refused": func(t *testing.T, p Plan) {
			wantKnobs(t, p, "prefill-device", "-")
			if !strings.Contains(decision(p, "prefill-device").Reason, "short of one token cycle") {
				t.Errorf("reason %q", decision(p, "prefill-device").Reason)
			}
		},
		"worked-phone-2.9gb": func(t *testing.T, p Plan) {
			wantKnobs(t, p, "prefill-device", "-", "moe-stream", "true")
			wantAbout(t, "may be held GB", float64(ledger(p, "may be held", CeilingLimit))/1e9, 2.6, 0.01)
		},
		"worked-phone-4.6gb": func(t *testing.T, p Plan) {
			wantKnobs(t, p, "prefill-device", "NPU0", "prefill-slots", "2", "prefill-slots-on-demand", "true", "dense-weights", "pinned")
			wantAbout(t, "cache GB", float64(p.Config.CacheMB)*float64(mib)/1e9, 1.8, 0.03)
			if ledger(p, "prefill device", CeilingHoldable) == 0 {
				t.Error("a device without a stated size must be charged to the host")
			}
		},
		"worked-two-cards": func(t *testing.T, p Plan) {
			wantKnobs(t, p, "gpu-layers", "16", "device-split", "CARD0=8,CARD1=8", "prefill-device", "-", "moe-stream", "true")
		},
		"worked-unified-counted-once": func(t *testing.T, p Plan) {
			wantKnobs(t, p, "moe-stream", "true")
			wantTopic(t, p, "placement-declined")
			wantTopic(t, p, "shared-memory")
			if p.Config.GPULayers != 0 {
				t.Errorf("%d layers placed on memory that is the host's", p.Config.GPULayers)
			}
		},
		"worked-child-dead": func(t *testing.T, p Plan) {
			if !strings.Contains(decision(p, "device").Reason, "UNUSABLE - its probe") && !strings.Contains(decision(p, "device").Reason, "UNUSABLE, its probe") {
				t.Errorf("reason %q", decision(p, "device").Reason)
			}
			wantKnobs(t, p, "prefill-device", "-")
		},
		"worked-crossing-owed":          func(t *testing.T, p Plan) { wantTopic(t, p, "device-crossing") },
		"worked-desktop-lanes":          func(t *testing.T, p Plan) { wantKnobs(t, p, "io-threads", "4") },
		"worked-desktop-release-mmap":   func(t *testing.T, p Plan) { wantKnobs(t, p, "release-mmap", "true") },
		"worked-desktop-mapping-silent": func(t *testing.T, p Plan) { wantKnobs(t, p, "release-mmap", "false") },
		"worked-phone-just-fits":        func(t *testing.T, p Plan) { wantTopic(t, p, "fits-needs-air"); wantKnobs(t, p, "moe-stream", "true") },
		"worked-phone-air":              func(t *testing.T, p Plan) { wantKnobs(t, p, "moe-stream", "false") },
		"worked-ubatch-16384":           func(t *testing.T, p Plan) { wantKnobs(t, p, "ubatch", "1024") },
	} {
		t.Run(name, func(t *testing.T) { check(t, loadPlan(t, name)) })
	}
}

// TestWidthsByHand: a width the caller fixed is kept and charged in full.
func TestWidthsByHand(t *testing.T) {
	for name, gb := range map[string]float64{"512": 0.4, "2048": 1.1, "4096": 2.1, "16384": 8.0} {
		p := loadPlan(t, "worked-ubatch-"+name+"-pinned")
		wantKnobs(t, p, "ubatch", name)
		held := ledger(p, "context", CeilingHoldable) + ledger(p, "compute buffers", CeilingHoldable)
		wantAbout(t, "buffers GB at "+name, float64(held)/1e9, gb, 0.05)
	}
}

func decision(p Plan, knob string) Decision {
	for _, d := range p.Decisions {
		if d.Knob == knob {
			return d
		}
	}
	return Decision{}
}

func ledger(p Plan, row, ceiling string) int64 {
	for _, r := range p.Ledger {
		if r.Row == row && r.Ceiling == ceiling {
			return r.Bytes
		}
	}
	return 0
}

func wantKnobs(t *testing.T, p Plan, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := decision(p, pairs[i]).Value; got != pairs[i+1] {
			t.Errorf("%s = %q, want %q (%s)", pairs[i], got, pairs[i+1], decision(p, pairs[i]).Reason)
		}
	}
}

func wantTopic(t *testing.T, p Plan, topic string) {
	t.Helper()
	for _, d := range p.Decisions {
		if d.Topic == topic {
			return
		}
	}
	t.Errorf("no decision has the topic %s", topic)
}

func wantAbout(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*want {
		t.Errorf("%s = %.4g, want %.4g within %.1f %%", what, got, want, within*100)
	}
}
