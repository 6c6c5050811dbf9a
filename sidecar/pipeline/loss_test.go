package pipeline

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/positions"
)

func TestWhatRetentionTookIsCountedOnceAndCopyingGoesOn(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 4)...)
	r := l.start()
	l.copied("t", 0, values("v", 0, 4)...)
	r.stop()
	l.source.write("t", 0, values("v", 4, 6)...)
	if err := l.source.DeleteRecords("t", 0, 7); err != nil {
		t.Fatal(err)
	}
	// The start goes well, and finds the gap; it cannot go on at once. That must
	// not count the loss again.
	fault := l.target.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeProducers}, Err: kerr.UnknownServerError, Count: 2})
	r = l.start()
	l.copied("t", 0, append(values("v", 0, 4), values("v", 7, 3)...)...)
	if p, _ := r.partition("t", 0); p.Lost != 3 {
		t.Errorf("%d offsets lost, want 3", p.Lost)
	}
	if n := fault.Hits(); n != 2 {
		t.Errorf("it could not go on %d times, want 2", n)
	}
	if n := l.log.Count("deleted records before they were copied"); n != 1 {
		t.Errorf("the loss is logged %d times", n)
	}
}

func TestACutBatchIsCopiedFromTheCut(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 10)...)
	if err := l.source.DeleteRecords("t", 0, 4); err != nil {
		t.Fatal(err)
	}
	l.start()
	l.copied("t", 0, values("v", 4, 6)...)
}

func TestASourceThatIsShorterThanWhatWasCopiedStalls(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.create("other", 1)
	l.source.write("t", 0, values("v", 0, 4)...)
	s := l.store()
	if err := s.Save(t.Context(), map[positions.Key]positions.Position{{Topic: "t"}: positions.Plain(99)}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	r := l.start()
	p := r.stalled("t", 0, "ends at offset 4", "up to 99")
	if p.Position != 99 {
		t.Errorf("the position is %d, want 99", p.Position)
	}
	l.source.write("other", 0, "o")
	l.copied("other", 0, "o")
}

// A broker says OFFSET_OUT_OF_RANGE also when its log does not have the leader
// epoch of the last read. The offset is there then, but its records are others.
func TestAnOffsetThatIsThereButDeniedStallsInsteadOfSpinning(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 4)...)
	var ids atomic.Int64
	l.target.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
		ids.Add(1)
		return nil, nil, false
	})
	denied := l.source.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "t", Err: kerr.OffsetOutOfRange, Count: -1})
	defer denied.Remove()
	r := l.start()
	r.stalled("t", 0, "offsets 0 to 4", "offset 0")
	if n := ids.Load(); n > 5 {
		t.Errorf("%d producer ids were asked for", n)
	}
}

// A target that loses track of each new producer at once must not be asked in a
// loop.
func TestASequenceThatIsLostAgainAndAgainIsTriedWithPauses(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, "v")
	lost := l.target.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "A.t", Err: kerr.OutOfOrderSequenceNumber, Count: 4})
	l.start()
	if err := lost.Wait(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if n := l.log.Count("idea of what was sent"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	lost.Remove()
	l.copied("t", 0, "v")
	if n := l.log.Count("idea of what was sent"); n != 1 {
		t.Errorf("it is logged %d times: %s", n, l.log)
	}
}
