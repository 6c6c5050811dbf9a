package pipeline

import (
	"fmt"
	"testing"
	"time"

	"mirror/sidecar/config"
	"mirror/sidecar/positions"
)

func TestASourceTopicMadeAgainStallsAloneUntilItsTargetIsDeleted(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.create("other", 1)
	l.source.write("t", 0, values("old", 0, 3)...)
	r := l.start()
	l.copied("t", 0, values("old", 0, 3)...)

	l.source.remove("t")
	l.source.create("t", 1)
	l.source.write("t", 0, values("new", 0, 5)...)
	p := r.stalled("t", 0, "deleted and made again", `"A.t"`)
	if p.StalledAt != 3 {
		t.Errorf("stalled at %d, want 3", p.StalledAt)
	}
	l.source.write("other", 0, "o")
	l.copied("other", 0, "o")
	l.copied("t", 0, values("old", 0, 3)...)

	l.target.remove("A.t")
	l.copied("t", 0, values("new", 0, 5)...)
	r.runs("t", 0)
	if n := l.log.Count("partition is stalled"); n != 1 {
		t.Errorf("the stall is logged %d times", n)
	}
	if n := l.log.Count("the target topic is a new one"); n != 1 {
		t.Errorf("the new target topic is logged %d times", n)
	}
}

func TestATopicMadeAgainWhileTheFlowWasStoppedIsNoticed(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, values("old", 0, 3)...)
	r := l.start()
	l.copied("t", 0, values("old", 0, 3)...)
	r.stop()
	l.source.remove("t")
	l.source.create("t", 1)
	l.source.write("t", 0, values("new", 0, 5)...)
	l.start().stalled("t", 0, "deleted and made again")
	l.copied("t", 0, values("old", 0, 3)...)
}

func TestADeletedTargetTopicIsCopiedAgain(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 3)...)
	l.start()
	l.copied("t", 0, values("v", 0, 3)...)
	l.target.remove("A.t")
	l.source.write("t", 0, values("v", 3, 3)...)
	l.copied("t", 0, values("v", 0, 6)...)
}

func TestATargetTopicThatSomebodyElseMadeAgainStalls(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 3)...)
	r := l.start()
	l.copied("t", 0, values("v", 0, 3)...)
	r.stop()
	l.target.remove("A.t")
	l.target.create("A.t", 1)
	l.target.write("A.t", 0, "foreign")
	l.start().stalled("t", 0, "made again by somebody else")
	l.copied("t", 0, "foreign")
}

func TestATopicThatGoesAndComesBack(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 2)
	l.source.write("t", 0, values("v", 0, 3)...)
	r := l.start()
	l.copied("t", 0, values("v", 0, 3)...)
	l.source.remove("t")
	eventually(t, "the end of its partitions", func() string {
		if ps := r.Status().Partitions; len(ps) != 0 {
			return fmt.Sprintf("%+v", ps)
		}
		return ""
	})
	if got := l.positions()[positions.Key{Topic: "t"}].Offset; got != 2 {
		t.Errorf("its position is %d, want 2", got)
	}
	l.target.remove("A.t")
	l.source.create("t", 2)
	l.source.write("t", 0, values("again", 0, 3)...)
	l.copied("t", 0, values("again", 0, 3)...)
	if n := l.log.Count("topic is gone from the source"); n != 1 {
		t.Errorf("its end is logged %d times", n)
	}
}

func TestPartitionsThatAreAddedAreCopiedFromTheirBeginning(t *testing.T) {
	l := newLab(t, func(f *config.Flow) { f.Start = config.Start{Kind: config.Latest} })
	l.source.create("t", 1)
	r := l.start()
	r.runs("t", 0)
	l.source.grow("t", 3)
	l.source.write("t", 2, "v")
	l.copied("t", 2, "v")
}

// A target that is gone for long, for the topics are looked at only now and then,
// must not keep the memory of all.
func TestATargetTopicThatIsGoneKeepsNobodyElseFromWorking(t *testing.T) {
	l := newLab(t, func(f *config.Flow) { f.Refresh = time.Hour })
	const partitions = 8
	l.source.create("bad", partitions)
	l.source.create("good", 1)
	r := l.start()
	for n := range int32(partitions) {
		r.runs("bad", n)
	}
	r.runs("good", 0)
	l.target.remove("A.bad")
	big := string(make([]byte, 200<<10))
	for range 4 { // far more than the flow's megabyte
		for n := range int32(partitions) {
			l.source.write("bad", n, big)
		}
	}
	for i := range 20 {
		l.source.write("good", 0, fmt.Sprint(i, big))
	}
	eventually(t, "the other topic", func() string {
		if n := len(l.target.values("A.good", 0)); n != 20 {
			return fmt.Sprintf("%d of 20 records are there; %d bytes are in use", n, r.Status().MemoryInUse)
		}
		return ""
	})
}
