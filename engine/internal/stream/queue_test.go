package stream

import (
	"sync"
	"testing"
)

// Every request is served once, whatever the number of lanes and wherever in
// the ring the queue stands; a single lane serves them in order.
func TestQueueServesEachOnce(t *testing.T) {
	for _, lanes := range []int{1, 3} {
		q := newQueue(5) // rounded up to 8
		q.tail, q.posted = 1<<32-20, 1<<32-20
		q.head.Store(1<<32 - 20)
		var wg sync.WaitGroup
		served := make([][]int32, lanes)
		for lane := range lanes {
			wg.Go(func() {
				for r := q.take(); r.tensor != nil; r = q.take() {
					served[lane] = append(served[lane], r.expert)
					r.batch.left.Add(-1)
				}
			})
		}
		tensor, b := &Tensor{}, &batch{}
		const rounds, each = 40, 8
		for round := range int32(rounds) {
			b.left.Store(each)
			for i := range int32(each) {
				q.put(request{tensor: tensor, expert: round*each + i, batch: b})
			}
			q.post()
			for n := b.left.Load(); n > 0; n = b.left.Load() {
				sleepOn(&b.left, n, 1000)
			}
		}
		for range lanes {
			q.put(request{})
		}
		q.post()
		wg.Wait()
		var got [rounds * each]int
		for _, s := range served {
			for i, e := range s {
				got[e]++
				if lanes == 1 && int(e) != i {
					t.Fatalf("request %d was served as number %d by the only lane", e, i)
				}
			}
		}
		for e, n := range got {
			if n != 1 {
				t.Errorf("%d lanes: request %d was served %d times", lanes, e, n)
			}
		}
	}
}

// A lane that sleeps wakes for a request, and who waits for a batch wakes when
// it is done, neither by a timeout.
func TestFutexWakes(t *testing.T) {
	l := startLanes(&fakeFile{data: make([]byte, 64), align: 1}, 2, 1, 0)
	defer l.stop()
	tensor := &Tensor{Slice: 8}
	l.timeout = 20e9
	for range 200 {
		b := l.expect(Gate, 1)
		l.queue.put(request{tensor: tensor, dst: make([]byte, 8), batch: b})
		l.queue.post()
		if err := l.wait(Gate); err != nil {
			t.Fatal(err)
		}
	}
}

// What is held is taken when all that was posted is done, at once when nothing
// is under way, or before what is posted next.
func TestQueueHolds(t *testing.T) {
	q := newQueue(8)
	put := func(expert int32) { q.put(request{tensor: &Tensor{}, expert: expert}) }
	may := func(when string, want int32) {
		t.Helper()
		if got := q.ready.Load(); got != want {
			t.Fatalf("%s: %d requests may be taken, want %d", when, got, want)
		}
	}
	put(0)
	q.post()
	put(1)
	q.hold()
	may("one posted, one held", 1)
	q.take()
	may("the posted one is being read", 0)
	q.done()
	may("it is done", 1)
	q.take()
	put(2)
	q.hold()
	may("held while nothing is under way", 1)
	q.take()
	put(3)
	q.post()
	put(4)
	q.hold()
	put(5)
	q.post()
	may("posted after a held one", 3)
	for want := int32(3); want <= 5; want++ {
		if got := q.take().expert; got != want {
			t.Errorf("request %d was taken, want %d", got, want)
		}
	}
}
