package wire

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// TestPoolLaws runs a pool against a model that only counts.
func TestPoolLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(0, 1<<20).Draw(t, "limit")
		p := NewPool(limit)
		type held struct {
			f    *Frame
			n    int // bytes of its buffer
			c    int // holders
			mark byte
		}
		var frames []held
		var reserved []int
		inUse, reservedSum := int64(0), int64(0)
		marks := byte(0)
		size := rapid.OneOf(rapid.IntRange(0, 20000), rapid.IntRange(0, 1<<20))
		pick := func(t *rapid.T, n int) int {
			if n == 0 {
				t.Skip("nothing there")
			}
			return rapid.IntRange(0, n-1).Draw(t, "which")
		}
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				n := size.Draw(t, "n")
				f := p.Get(n)
				if len(f.Bytes()) != n {
					t.Fatalf("a frame of %d bytes for %d", len(f.Bytes()), n)
				}
				marks++
				for i := range f.Bytes() {
					f.Bytes()[i] = marks // shows, below, that no other frame has the same bytes
				}
				frames = append(frames, held{f, cap(f.Bytes()), 1, marks})
				inUse += int64(cap(f.Bytes()))
				if c := cap(f.Bytes()); c > 5*max(n, smallest) {
					t.Fatalf("a buffer of %d bytes for %d", c, n)
				}
			},
			"retain": func(t *rapid.T) {
				i := pick(t, len(frames))
				frames[i].f.Retain()
				frames[i].c++
			},
			"release": func(t *rapid.T) {
				i := pick(t, len(frames))
				h := &frames[i]
				for _, b := range h.f.Bytes() {
					if b != h.mark {
						t.Fatal("two frames share a buffer")
					}
				}
				h.f.Release()
				if h.c--; h.c == 0 {
					inUse -= int64(h.n)
					frames = append(frames[:i], frames[i+1:]...)
				}
			},
			"reserve": func(t *rapid.T) {
				n := size.Draw(t, "n")
				ctx, cancel := context.WithCancel(context.Background())
				taken := inUse + reservedSum
				if fits := taken == 0 || taken+int64(n) <= limit; !fits {
					cancel() // it would wait
				}
				err := p.Reserve(ctx, n)
				if (err == nil) != (ctx.Err() == nil) {
					t.Fatalf("Reserve(%d) with %d of %d taken: %v", n, taken, limit, err)
				}
				cancel()
				if err == nil {
					reserved = append(reserved, n)
					reservedSum += int64(n)
				}
			},
			"unreserve": func(t *rapid.T) {
				i := pick(t, len(reserved))
				p.Unreserve(reserved[i])
				reservedSum -= int64(reserved[i])
				reserved = append(reserved[:i], reserved[i+1:]...)
			},
			"": func(t *rapid.T) {
				if got := p.InUse(); got != inUse {
					t.Fatalf("%d bytes in use, want %d", got, inUse)
				}
				if p.reserved != reservedSum {
					t.Fatalf("%d bytes reserved, want %d", p.reserved, reservedSum)
				}
				idle := int64(0)
				for i := range p.classes {
					for _, b := range p.classes[i].free {
						idle += int64(cap(b))
					}
				}
				if idle != p.idle || idle > 0 && idle+inUse > limit+limit/4 {
					t.Fatalf("%d bytes idle, counted as %d, beside %d in use of %d", idle, p.idle, inUse, limit)
				}
			},
		})
	})
}

func TestSizeClasses(t *testing.T) {
	index, size := -1, 0
	for n := 0; n <= 1<<20; n++ {
		i, s := sizeClass(n)
		if s < n || (n > smallest && s > n+n/4) {
			t.Fatalf("%d bytes go into a buffer of %d", n, s)
		}
		if s != size {
			if i != index+1 || s < size {
				t.Fatalf("class %d of %d bytes follows class %d of %d", i, s, index, size)
			}
			index, size = i, s
		} else if i != index {
			t.Fatalf("classes %d and %d have the same size", i, index)
		}
		if again, _ := sizeClass(s); again != i {
			t.Fatalf("a buffer of %d bytes goes back into class %d instead of %d", s, again, i)
		}
	}
	if _, s := sizeClass(1<<31 - 1); s < 1<<31-1 {
		t.Errorf("the largest answer goes into a buffer of %d bytes", s)
	}
}

func TestBuffersAreUsedAgain(t *testing.T) {
	p := NewPool(8 << 20)
	first := p.Get(1 << 20)
	buf := &first.Bytes()[0]
	first.Bytes()[0] = 42
	first.Release()
	second := p.Get(900 << 10)
	if &second.Bytes()[0] != buf || second.Bytes()[0] != 42 {
		t.Error("a buffer that fits was not used again as it was")
	}
	if third := p.Get(1 << 20); &third.Bytes()[0] == buf {
		t.Error("a buffer was handed out twice")
	}
}

// TestIdleMemoryFollowsTheLoad changes the size of the frames: those of the new size must not be
// crowded out by the old.
func TestIdleMemoryFollowsTheLoad(t *testing.T) {
	for _, sizes := range [][2]int{{1 << 20, 64 << 10}, {64 << 10, 1 << 20}} {
		p := NewPool(8 << 20)
		for _, size := range sizes {
			var frames []*Frame
			for range (4 << 20) / size {
				frames = append(frames, p.Get(size))
			}
			for _, f := range frames {
				f.Release()
			}
		}
		index, size := sizeClass(sizes[1])
		if got, want := len(p.classes[index].free), (4<<20)/size; got != want {
			t.Errorf("%d buffers of %d bytes idle after %v, want %d", got, size, sizes, want)
		}
	}
}

func TestReserveWaitsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(100)
		ctx := t.Context()
		if err := p.Reserve(ctx, 80); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []int
		wait := func(ctx context.Context, n int) {
			if err := p.Reserve(ctx, n); err != nil {
				n = -n
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, n)
		}
		expect := func(step string, want ...int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(order) != len(want) {
				t.Fatalf("%s: passed %v, want %v", step, order, want)
			}
			for i := range want {
				if order[i] != want[i] {
					t.Fatalf("%s: passed %v, want %v", step, order, want)
				}
			}
		}
		leaving, leave := context.WithCancel(ctx)
		for _, n := range []int{70, 50, 500, 1} {
			if n == 70 {
				go wait(leaving, n)
			} else {
				go wait(ctx, n)
			}
			synctest.Wait()
		}
		expect("nothing fits, and 1 does not overtake")
		leave()
		expect("the first one leaves", -70)
		p.Unreserve(50)
		expect("30 reserved: the next one passes", -70, 50)
		f := p.Get(10)
		p.Unreserve(30)
		p.Unreserve(50)
		expect("10 in use: 500 does not pass", -70, 50)
		f.Release()
		expect("nothing in use: 500 passes alone", -70, 50, 500)
		p.Unreserve(500)
		expect("and then the last", -70, 50, 500, 1)
		p.Unreserve(1)
		leave()
		if err := p.Reserve(leaving, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("reserved with an ended context: %v", err)
		}
	})
}

func TestMisuseOfAPoolPanics(t *testing.T) {
	released := func() *Frame { f := NewPool(10).Get(1); f.Release(); return f }
	plain := func() *Frame { f := newFrame(nil, 1); f.Release(); return f }
	for name, misuse := range map[string]func(){
		"release twice":         func() { released().Release() },
		"release twice, plain":  func() { plain().Release() },
		"retain after release":  func() { released().Retain() },
		"reserve below 0":       func() { NewPool(10).Reserve(context.Background(), -1) },
		"unreserve below 0":     func() { NewPool(10).Unreserve(-1) },
		"unreserve of too much": func() { NewPool(10).Unreserve(1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			misuse()
		}()
	}
}

// TestPoolIsSafe uses a pool from many goroutines, for the race detector.
func TestPoolIsSafe(t *testing.T) {
	p := NewPool(1 << 20)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 300 {
				n := 1 + (i*7919+j*104729)%(200<<10)
				if err := p.Reserve(context.Background(), n); err != nil {
					t.Error(err)
					return
				}
				f := p.Get(n)
				p.Unreserve(n)
				f.Bytes()[n-1] = byte(i)
				f.Retain()
				wg.Go(f.Release)
				f.Release()
			}
		})
	}
	wg.Wait()
	if p.InUse() != 0 || p.reserved != 0 {
		t.Errorf("%d bytes in use and %d reserved at the end", p.InUse(), p.reserved)
	}
}
