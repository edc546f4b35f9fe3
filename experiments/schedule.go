package experiments

import (
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/bmoe/bmoe/results/record"
)

// Designs: the orders in which arms are run. Arms are always interleaved; all
// of one arm before all of another measures the time of day.
const (
	DesignRandom = "random" // two arms: half AB, half BA, in seeded random order
	DesignABBA   = "abba"   // two arms, a fixed order that is easy to read
	DesignBlocks = "blocks" // each block holds every arm once, positions balanced
)

// WarmupBlock is the block number of the runs before the first block, kept but
// never judged.
const WarmupBlock = -1

// Schedule lays out warm-up runs and n blocks of the arms. The same arguments
// give the same schedule for ever: the generator is fixed.
func Schedule(design string, arms []string, n, warmup int, seed int64) ([]record.Slot, error) {
	rng := rand.New(rand.NewPCG(uint64(seed), 0x626d6f65))
	var orders [][]int
	switch {
	case len(arms) < 2:
		return nil, fmt.Errorf("a comparison needs two arms, got %d", len(arms))
	case n < 1:
		return nil, fmt.Errorf("--pairs %d: at least one pair is needed", n)
	case design == DesignABBA && len(arms) == 2:
		orders = alternating(n)
	case design == DesignABBA:
		return nil, fmt.Errorf("--design abba is for two arms, not %d: use blocks", len(arms))
	case design == DesignRandom && len(arms) == 2:
		orders = restricted(n, rng)
	case design == DesignRandom || design == DesignBlocks:
		orders = balanced(len(arms), n, rng)
	default:
		return nil, fmt.Errorf("--design %q: want random, abba or blocks", design)
	}
	var slots []record.Slot
	add := func(block, pos, arm int) {
		slots = append(slots, record.Slot{Index: len(slots), Block: block, Pos: pos, Arm: arms[arm]})
	}
	for i := range warmup * len(arms) {
		add(WarmupBlock, i, i%len(arms))
	}
	for b, order := range orders {
		for pos, arm := range order {
			add(b, pos, arm)
		}
	}
	return slots, nil
}

// alternating is AB BA BA AB BA AB AB BA ...: each pair turned by the parity of
// its number's bits, so that linear and curved drifts cancel.
func alternating(n int) [][]int {
	orders := make([][]int, n)
	for i := range orders {
		orders[i] = []int{0, 1}
		if bits.OnesCount(uint(i))%2 == 1 {
			orders[i] = []int{1, 0}
		}
	}
	return orders
}

// restricted is half AB and half BA in random order; an odd pair out is tossed.
func restricted(n int, rng *rand.Rand) [][]int {
	turned := make([]bool, n)
	for i := range n / 2 {
		turned[i] = true
	}
	if n%2 == 1 {
		turned[n-1] = rng.IntN(2) == 1
	}
	rng.Shuffle(n, func(i, j int) { turned[i], turned[j] = turned[j], turned[i] })
	orders := make([][]int, n)
	for i, t := range turned {
		orders[i] = []int{0, 1}
		if t {
			orders[i] = []int{1, 0}
		}
	}
	return orders
}

// balanced gives n orders of k arms such that every run of k (for odd k, 2k)
// orders has each arm equally often in each position and after each other arm:
// Williams squares with arms and rows shuffled anew for each square.
func balanced(k, n int, rng *rand.Rand) [][]int {
	var orders [][]int
	for len(orders) < n {
		square := williams(k)
		names := rng.Perm(k)
		rng.Shuffle(len(square), func(i, j int) { square[i], square[j] = square[j], square[i] })
		for _, row := range square {
			for i := range row {
				row[i] = names[row[i]]
			}
			orders = append(orders, row)
		}
	}
	return orders[:n]
}

// williams is a Latin square balanced for first-order carry-over (Williams
// 1949): rows are the zigzag 0 1 k-1 2 k-2 ... shifted; an odd k needs the
// mirrored rows as well.
func williams(k int) [][]int {
	zigzag := make([]int, k)
	lo, hi := 1, k-1
	for i := 1; i < k; i++ {
		if i%2 == 1 {
			zigzag[i] = lo
			lo++
		} else {
			zigzag[i] = hi
			hi--
		}
	}
	var rows [][]int
	for shift := range k {
		row := make([]int, k)
		for i, v := range zigzag {
			row[i] = (v + shift) % k
		}
		rows = append(rows, row)
	}
	if k%2 == 1 {
		for _, row := range rows[:k] {
			mirrored := make([]int, k)
			for i, v := range row {
				mirrored[k-1-i] = v
			}
			rows = append(rows, mirrored)
		}
	}
	return rows
}
