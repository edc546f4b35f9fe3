package planner

import (
	"path/filepath"
	"strings"
	"testing"
)

// A copy of weights that are laid out anew is charged where the original was
// not going to be held, and is not made where it finds no room.
func TestRepackedCopiesAreCharged(t *testing.T) {
	const mib = 1 << 20
	tied := func(table int64) func(*planCase) {
		return func(c *planCase) {
			c.profile.Model.TiedHead = MeasuredFact(true, 0, "")
			if table > 0 {
				c.profile.Model.HeadTable = MeasuredFact(table*mib, 0, "")
			}
		}
	}
	// What is left is less than LRU's token cycle, and a copy would always pay.
	tight := func(c *planCase) {
		c.profile.Memory.Available = MeasuredFact[int64](360e6, 0, "")
		c.profile.Overheads.RepackRate = MeasuredFact(1e12, 0, "")
	}
	pin := func(knob, value string) func(*planCase) { return func(c *planCase) { c.pins[knob] = value } }
	tests := []struct {
		name, plan string
		edit       []func(*planCase)
		repack     string
		other      int64  // MiB of other weights on the ledger
		cache      int    // MiB
		says       string // in a line of the plan
	}{
		{"a head of its own costs nothing", "repack-wins", nil, "on", 59, 1426, "laid out anew for this CPU"},
		{"the table beside its copy", "repack-wins", []func(*planCase){tied(40)}, "on", 99, 1386, "40 MiB of its room is a copy"},
		{"a table of unknown size is charged as all there is", "repack-wins", []func(*planCase){tied(0)}, "on", 118, 1367, "59 MiB of its room is a copy"},
		{"the caller's cache is not shrunk", "repack-wins", []func(*planCase){tied(40), pin("cache-mb", "1426")}, "off", 59, 1426, "a copy of 40 MiB finds no room"},
		{"without a cache, in what is free", "repack-wins", []func(*planCase){tied(40), tight, pin("cache-policy", "lru")}, "on", 99, 0, "laid out anew for this CPU"},
		{"there is no cache to shrink", "repack-wins", []func(*planCase){tied(150), tight, pin("cache-policy", "lru")}, "off", 59, 0, "a copy of 150 MiB finds no room"},
		{"nor one where the caller wants none", "repack-wins", []func(*planCase){tied(150), tight, pin("cache-mb", "0")}, "off", 59, 0, "a copy of 150 MiB finds no room"},
		{"the caller repacks", "repack-wins", []func(*planCase){tied(40), pin("repack", "on")}, "on", 99, 1386, "Kept as you set it: on"},
		{"the weights would not be held", "regime-dense-oversized", nil, "off", 0, 8676, "a copy of 13.5 GiB finds no room"},
		{"mapped, larger than memory", "regime-mapping-cheaper", nil, "off", 0, -1, "laid out anew they would be held"},
		{"mapped, the caller repacks", "regime-mapping-cheaper", []func(*planCase){pin("repack", "on"), pin("moe-stream", "off")}, "on", 0, -1, "Weights laid out anew are held, 19.7 GiB"},
		{"resident", "vm-limit-150", nil, "auto", 0, -1, "fit in the"},
		{"resident, copy and locked mapping", "vm-limit-150", []func(*planCase){pin("load-mode", "mmap+mlock")}, "off", 0, -1, "laid out anew they would be held, 3574 MiB"},
		{"resident, read into memory", "vm-limit-150", []func(*planCase){pin("load-mode", "none")}, "auto", 0, -1, "fit in the"},
		{"resident, read into memory, the table beside its copy", "vm-limit-150", []func(*planCase){pin("load-mode", "none"), tied(600)}, "off", 0, -1, "laid out anew they would be held, 2387 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := readCase(t, filepath.Join("testdata", "plans", tt.plan+".txt"))
			if c.pins == nil {
				c.pins = Pins{}
			}
			for _, f := range tt.edit {
				f(&c)
			}
			plan := planOf(t, c)
			if got := ledger(plan, "other weights", CeilingHoldable) / mib; plan.Config.Repack != tt.repack || got != tt.other || plan.Config.CacheMB != tt.cache {
				t.Errorf("repack %s, %d MiB of other weights, cache %d; want %s, %d, %d", plan.Config.Repack, got, plan.Config.CacheMB, tt.repack, tt.other, tt.cache)
			}
			if free := ledger(plan, "free", CeilingHoldable); free < 0 && tt.repack != "on" {
				t.Errorf("%d MiB over the budget", -free/mib)
			}
			said := ""
			for _, d := range plan.Decisions {
				said += d.Brief + "\n"
			}
			if !strings.Contains(said, tt.says) {
				t.Errorf("no line says %q in\n%s", tt.says, said)
			}
		})
	}
}

// What is locked stays under the lock total, copies with it, and a copy leaves
// a prompt's slots their turn.
func TestCopiesKeepToTheLockTotal(t *testing.T) {
	const small = "fact memory.reclaim compress\nfact model.tied-head yes\n"
	tests := []struct {
		name, plan, facts string
		dense, repack     string
		cache             int // MiB
	}{
		{"the store takes the set and the caller's copy", "worked-laptop-8.9gb", "pin repack on\nfact model.tied-head yes", "pinned", "on", 4428},
		{"it takes the set without the copy", "worked-laptop-8.9gb", "pin repack on\nfact model.tied-head yes\nfact locks.store-bytes 2GiB\nfact locks.in-place 2GiB", "anon", "on", 1945},
		{"a store without a total of its own shares the other's", "worked-laptop-8.9gb", "forget locks.store-bytes\nfact locks.in-place 1GiB", "anon", "auto", 972},
		{"the cache's lock makes room for the copy", "repack-wins", small + "fact model.head-table 40MiB\nfact locks.store-bytes 1GiB\nfact locks.in-place 1GiB", "pinned", "on", 873},
		{"a prompt's turn counts on what is free", "repack-wins", small + "fact model.head-table 140MiB\nfact locks.store no\nfact locks.shared-pool no\nfact locks.in-place 100MiB\npin n-expert-used 1\nfact memory.available 500MB\nfact overhead.repack 1000GB/s", "anon", "off", 95},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := readCase(t, filepath.Join("testdata", "plans", tt.plan+".txt"))
			if err := c.read(tt.facts); err != nil {
				t.Fatal(err)
			}
			plan := planOf(t, c)
			if got := plan.Config; got.DenseWeights != tt.dense || got.Repack != tt.repack || got.CacheMB != tt.cache {
				t.Errorf("weights %s, repack %s, cache %d; want %s, %s, %d", got.DenseWeights, got.Repack, got.CacheMB, tt.dense, tt.repack, tt.cache)
			}
			free, turn := ledger(plan, "free", CeilingHoldable), ledger(plan, "prefill slots", CeilingInTurn)
			if locked := ledger(plan, "free", CeilingLockable); free < 0 || locked < 0 || turn > free+ledger(plan, "expert cache", CeilingHoldable) {
				t.Errorf("over a ceiling: %+v", plan.Ledger)
			}
		})
	}
}
