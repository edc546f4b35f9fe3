package probes

import (
	"path/filepath"
	"testing"

	"github.com/bmoe/bmoe/engine/model"
	"github.com/bmoe/bmoe/engine/synth"
	"github.com/bmoe/bmoe/planner"
)

func opened(t *testing.T, edit func(*synth.Spec)) *model.Model {
	t.Helper()
	m, err := model.Open(written(t, edit).Model)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestModelFacts(t *testing.T) {
	const slice = 256 * 256 / 32 * 18 // q4_0
	tests := []struct {
		name   string
		edit   func(*synth.Spec)
		layers int64
		moe    int64
		cycle  int64
		tied   bool
		idle   bool // something in the file is not run
	}{
		{"plain", nil, 3, 3, 3 * 3 * 4 * slice, false, false},
		{"tied head", func(s *synth.Spec) { s.TiedHead = true }, 3, 3, 3 * 3 * 4 * slice, true, false},
		{"fused gate and up", func(s *synth.Spec) { s.Arch, s.FusedGateUp = "deepseek2", true }, 3, 3, 3 * 3 * 4 * slice, false, false},
		{"a block for multi-token prediction", func(s *synth.Spec) { s.Arch, s.MTP = "deepseek2", true }, 3, 3, 3 * 3 * 4 * slice, false, true},
		{"a leading layer without experts", func(s *synth.Spec) { s.Arch, s.DenseLead = "deepseek2", 1 }, 3, 2, 2 * 3 * 4 * slice, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := modelFacts(opened(t, tt.edit))
			if f.Layers.Value != tt.layers || f.MoeLayers.Value != tt.moe || f.TokenCycle.Value != tt.cycle || f.TiedHead.Value != tt.tied {
				t.Errorf("layers %d moe %d cycle %d tied %v, want %+v", f.Layers.Value, f.MoeLayers.Value, f.TokenCycle.Value, f.TiedHead.Value, tt)
			}
			if (f.DenseIdle.Value > 0) != tt.idle {
				t.Errorf("idle = %d", f.DenseIdle.Value)
			}
			if table, ok := f.HeadTable.Get(); !ok || (table > 0) != tt.tied || table > f.DenseRead.Value {
				t.Errorf("head table = %+v with a tied head: %v", f.HeadTable, tt.tied)
			}
			if (f.DenseRow.Value == 0) != tt.tied {
				t.Errorf("row tables = %d with a tied head: %v", f.DenseRow.Value, tt.tied)
			}
			if f.RoutedBytes.Value != tt.moe*3*16*slice || f.LayerExperts.Value != 3*16*slice {
				t.Errorf("routed %d, largest layer %d", f.RoutedBytes.Value, f.LayerExperts.Value)
			}
			parts := f.RoutedBytes.Value + f.DenseRead.Value + f.DenseRow.Value + f.DenseIdle.Value
			if parts > f.FileBytes.Value || parts < f.FileBytes.Value*3/4 {
				t.Errorf("parts sum to %d of %d", parts, f.FileBytes.Value)
			}
			if f.Quants.Value[0] != (planner.QuantShare{Quant: "Q4_0", Bytes: f.RoutedBytes.Value}) {
				t.Errorf("quants %+v", f.Quants.Value)
			}
		})
	}
}

func TestStorageIsProbedInTheShardOfTheExperts(t *testing.T) {
	m := opened(t, func(s *synth.Spec) { s.Shards, s.Layers = 3, 6 })
	got := storageTarget(m)
	by := make([]int64, len(m.Shards))
	for i := range m.ExpertTensors {
		by[m.ExpertTensors[i].Shard] += m.ExpertTensors[i].Bytes
	}
	best := 0
	for i := range by {
		if by[i] > by[best] {
			best = i
		}
	}
	if len(m.Shards) < 2 || got.path != m.Shards[best] {
		t.Errorf("target %s, experts by shard %v", got.path, by)
	}
	var n int64
	for _, e := range got.extents {
		if e.off+e.n > m.Sizes[best] {
			t.Errorf("extent %+v is outside the shard of %d bytes", e, m.Sizes[best])
		}
		n += e.n
	}
	if n != by[best] || got.slice != 256*256/32*18 {
		t.Errorf("extents cover %d of %d, slice %d", n, by[best], got.slice)
	}
	if f := modelFacts(m); f.ExpertFile.Value != filepath.Base(got.path) {
		t.Errorf("expert file %q", f.ExpertFile.Value)
	}
}
