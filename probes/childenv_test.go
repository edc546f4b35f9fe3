package probes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChildEnvIsClean(t *testing.T) {
	got := ChildEnv([]string{
		"PATH=/bin", "HOME=/home/alice", "LC_ALL=C", "GGML_VK_VISIBLE_DEVICES=0", "XDG_DATA_HOME=/d", "BMOE_CACHE_MB=7", "BMOE_DB=/x",
		"LD_PRELOAD=/evil.so", "SECRET_TOKEN=s", "PATHOLOGY=1", "GODEBUG=x", "EMPTY", "=C:=x",
	}, "BMOE_PROBE_CHILD=1")
	want := []string{"PATH=/bin", "HOME=/home/alice", "LC_ALL=C", "GGML_VK_VISIBLE_DEVICES=0", "XDG_DATA_HOME=/d", "BMOE_PROBE_CHILD=1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := ChildEnv(nil); got == nil {
		t.Error("nil, which a child reads as all of its parent's")
	}
}
