package produce

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"
)

// check compares the log with what was pushed, from the last place on where
// records may be repeated: there all comes in order, once.
func (w *world) check() {
	want := w.pushed
	if r := w.l.refused; r != nil {
		// One record alone can be larger than the limit.
		if (r.Offset != w.b.poison || w.b.poison < 0) && !errors.Is(r.Err, kerr.MessageTooLarge) {
			w.Fatalf("refused at %d: %v; the poison is %d", r.Offset, r.Err, w.b.poison)
		}
		for len(want) > 0 && want[len(want)-1] >= r.Offset {
			want = want[:len(want)-1]
		}
	} else if w.l.acked != w.next-1 {
		w.Fatalf("acknowledged up to %d, pushed up to %d", w.l.acked, w.next-1)
	}
	if w.repeats > 0 {
		for len(want) > 0 && want[0] <= w.resumed {
			want = want[1:]
		}
	}
	if got := w.b.records[w.from:]; !slices.Equal(got, want) {
		w.Fatalf("the log has %v (from %d on of %v), want %v", got, w.from, w.b.records, want)
	}
	if w.l.stored != int64(len(want)) {
		w.Fatalf("%d records acknowledged, %d stored", w.l.stored, len(want))
	}
}

// play has the world go its random way.
func (w *world) play(more map[string]func(*rapid.T)) {
	actions := map[string]func(*rapid.T){
		"push":    func(*rapid.T) { w.push() },
		"skip":    func(*rapid.T) { w.skip() },
		"take":    func(*rapid.T) { w.take() },
		"receive": func(*rapid.T) { w.receive(nil, nil) },
		"answer":  func(*rapid.T) { w.answer() },
		"cut":     func(*rapid.T) { w.cut() },
		"":        func(*rapid.T) { w.settle() },
	}
	for name, do := range more {
		actions[name] = do
	}
	w.Repeat(actions)
	w.finish()
}

// notStored is a broker that refuses a batch before it looks at it: all behind it
// then has a gap.
func (w *world) notStored() {
	w.receive(rapid.SampledFrom([]error{kerr.NotEnoughReplicas, kerr.NotLeaderForPartition}).Draw(w.T, "err"), nil)
}

// storedAllTheSame is a broker that has stored what it says it failed to.
func (w *world) storedAllTheSame() {
	w.receive(nil, rapid.SampledFrom([]error{kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.NotLeaderForPartition}).Draw(w.T, "err"))
}

func refusing(t *rapid.T) *broker {
	b := &broker{limit: rapid.IntRange(90, 4000).Draw(t, "limit"), poison: -1}
	if rapid.Bool().Draw(t, "poisoned") {
		b.poison = rapid.Int64Range(0, 60).Draw(t, "poison")
	}
	return b
}

const month = 30 * 24 * time.Hour

func TestNothingIsLostRepeatedOrReordered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, refusing(t), 0)
		if rapid.Bool().Draw(t, "limit known") {
			w.p.SetLimit(w.b.limit)
		}
		w.play(map[string]func(*rapid.T){
			"not stored": func(*rapid.T) { w.notStored() },
			"stored":     func(*rapid.T) { w.storedAllTheSame() },
			// A broker forgets a producer of young records when it has lost what it knew.
			// After a failure, that is, or on a new connection; without one it is trusted
			// not to.
			"forget": func(*rapid.T) {
				stored := len(w.p.sent) > 0 && w.b.next != w.p.sent[0].sequence
				if len(w.flying) == 0 && !stored && (w.uneasy || w.p.session != w.session) {
					w.b.forget()
				}
			},
			"": func(t *rapid.T) {
				if w.l.lost != nil {
					t.Fatalf("lost: %v", w.l.lost)
				}
				w.settle()
			},
		})
	})
}

// A broker forgets a producer at any moment once the last records that it has of
// it are old, and then takes any sequence. As long as it refuses nothing, nothing
// is there twice.
func TestWhatABrokerForgetsIsNotSentTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, &broker{limit: 1 << 20, poison: -1}, 0, month)
		w.play(map[string]func(*rapid.T){
			"stored": func(*rapid.T) { w.storedAllTheSame() },
			"forget": func(*rapid.T) { w.forgetAged() },
		})
		if w.repeats != 0 {
			t.Fatalf("%d times something was to be repeated", w.repeats)
		}
	})
}

// Nor is anything lost when it refuses a batch in between: the batches behind it
// that it then takes are found, and what follows is there again, in order.
func TestWhatABrokerForgetsIsNotLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, refusing(t), 0, month)
		w.play(map[string]func(*rapid.T){
			"not stored": func(*rapid.T) { w.notStored() },
			"stored":     func(*rapid.T) { w.storedAllTheSame() },
			"forget":     func(*rapid.T) { w.forgetAged() },
			"overtake": func(*rapid.T) {
				w.notStored()
				w.forgetAged()
				w.receive(nil, nil)
			},
		})
	})
}

func (w *world) forgetAged() {
	if agedAt(w.b.stamp) {
		w.b.forget()
	}
}
