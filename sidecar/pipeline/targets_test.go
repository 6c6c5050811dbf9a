package pipeline

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"mirror/sidecar/config"
	"mirror/sidecar/positions"
	"mirror/sidecar/produce"
	"mirror/sidecar/status"
)

// counted checks that an error of the kind was counted once, and logged once with
// the text.
func (r *running) counted(kind, text string) {
	r.lab.Helper()
	// The state shows a moment before it is said and counted.
	eventually(r.lab.T, "a count of "+kind, func() string {
		if r.Status().Errors[kind] == 0 || r.lab.log.Count(text) == 0 {
			return "nothing is counted, or logged"
		}
		return ""
	})
	if n, logged := r.Status().Errors[kind], r.lab.log.Count(text); n != 1 || logged != 1 {
		r.lab.Errorf("%s counts %d times, and %q is logged %d times", kind, n, text, logged)
	}
}

// acknowledged is a stopped flow that has copied six values, and whose position
// says that the target acknowledged more: as it does after the target lost its tail.
func acknowledged(l *lab, offset, targetOffset int64, sequence int32) {
	l.Helper()
	key := positions.Key{Topic: "t"}
	at := l.positions()[key]
	at.Offset, at.TargetOffset, at.Sequence = offset, targetOffset, sequence
	s := l.store()
	defer s.Close()
	if err := s.Save(l.Context(), map[positions.Key]positions.Position{key: at}); err != nil {
		l.Fatal(err)
	}
}

func copiedSix(t *testing.T, change ...func(*config.Flow)) *lab {
	t.Helper()
	l := newLab(t, append(change, resuming)...)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 6)...)
	r := l.start()
	l.copied("t", 0, values("v", 0, 6)...)
	l.saved("t", 0, 5)
	r.stop()
	return l
}

func TestWhatTheTargetHasLostIsCopiedAgain(t *testing.T) {
	l := copiedSix(t)
	l.source.write("t", 0, values("v", 6, 4)...)
	acknowledged(l, 9, 9, 9)
	r := l.start()
	l.copied("t", 0, values("v", 0, 10)...)
	r.counted(status.ErrorDataLoss, "copying them again")
	l.saved("t", 0, 9)
}

// Offsets that hold nothing to be copied do not count.
func TestWhatTheTargetHasLostIsFoundBehindGaps(t *testing.T) {
	l := copiedSix(t)
	l.source.write("t", 0, "a")                     // 6
	l.source.transaction("t", false, "x", "x", "x") // 7 to 9, and its marker
	l.source.transaction("t", true, "b", "c")       // 11, 12, and its marker
	l.source.write("t", 0, "d")                     // 14
	acknowledged(l, 14, 9, 9)
	r := l.start()
	l.copied("t", 0, append(values("v", 0, 6), "a", "b", "c", "d")...)
	r.counted(status.ErrorDataLoss, "copying them again")
}

// Somebody else has written where the lost records were: only the broker's memory
// of the producer tells.
func TestWhatTheTargetHasLostUnderOthersRecordsIsCopiedAgain(t *testing.T) {
	l := copiedSix(t)
	l.source.write("t", 0, values("v", 6, 4)...)
	theirs := values("theirs", 0, 8)
	l.target.write("A.t", 0, theirs...)
	acknowledged(l, 9, 9, 9)
	ours := l.positions()[positions.Key{Topic: "t"}].ProducerID
	l.target.ControlKey(int16(kmsg.DescribeProducers), func(q kmsg.Request) (kmsg.Response, error, bool) {
		l.target.KeepControl()
		req := q.(*kmsg.DescribeProducersRequest)
		resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
		for _, rt := range req.Topics {
			st := kmsg.NewDescribeProducersResponseTopic()
			st.Topic = rt.Topic
			for _, n := range rt.Partitions {
				sp := kmsg.NewDescribeProducersResponseTopicPartition()
				sp.Partition = n
				sp.ActiveProducers = []kmsg.DescribeProducersResponseTopicPartitionActiveProducer{{ProducerID: ours, LastSequence: 5}}
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
	r := l.start()
	l.copied("t", 0, slices.Concat(values("v", 0, 6), theirs, values("v", 6, 4))...)
	r.counted(status.ErrorDataLoss, "copying them again")
}

// Where it cannot be told what is missing, on_data_loss decides.
func TestWhatTheTargetHasLostForGood(t *testing.T) {
	l := copiedSix(t, func(f *config.Flow) { f.OnDataLoss = config.Halt })
	l.source.write("t", 0, values("v", 6, 5)...)
	l.target.write("A.t", 0, "theirs")
	acknowledged(l, 9, 9, 9)
	r := l.start()
	p := r.stalled("t", 0, "offsets 7 to 9", `"A.t"`, `on_data_loss = "continue"`)
	if p.StalledAt != 10 {
		t.Errorf("stalled at %d, want 10", p.StalledAt)
	}
	r.counted(status.ErrorDataLoss, "partition is stalled")
	r.stop()
	l.cfg.OnDataLoss = config.Continue
	r = l.start()
	l.copied("t", 0, append(values("v", 0, 6), "theirs", "v-10")...)
	r.counted(status.ErrorDataLoss, "going on without them")
}

// A high watermark that is behind, as a new leader's is, is no loss.
func TestATargetThatIsBehindIsWaitedFor(t *testing.T) {
	l := copiedSix(t)
	lags := 3
	l.target.ControlKey(int16(kmsg.ListOffsets), func(q kmsg.Request) (kmsg.Response, error, bool) {
		l.target.KeepControl()
		req := q.(*kmsg.ListOffsetsRequest)
		if req.Topics[0].Topic != "A.t" || req.Topics[0].Partitions[0].Timestamp != -1 || lags == 0 {
			return nil, nil, false
		}
		lags--
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		st := kmsg.NewListOffsetsResponseTopic()
		st.Topic = "A.t"
		sp := kmsg.NewListOffsetsResponseTopicPartition()
		sp.Offset = 4
		st.Partitions = append(st.Partitions, sp)
		resp.Topics = append(resp.Topics, st)
		return resp, nil, true
	})
	l.source.write("t", 0, "v-6")
	r := l.start()
	l.copied("t", 0, values("v", 0, 7)...)
	if n := r.Status().Errors[status.ErrorDataLoss]; n != 0 {
		t.Errorf("%d losses are counted", n)
	}
}

// A batch that is stored below what was acknowledged: what was there is gone, and
// the acknowledgement moves no position.
func TestABatchThatIsStoredBelowWhatWasAcknowledged(t *testing.T) {
	l := newLab(t, resuming)
	l.source.create("t", 1)
	r := l.start()
	for i := range 4 { // a batch each
		l.source.write("t", 0, values("v", i, 1)...)
		l.copied("t", 0, values("v", 0, i+1)...)
	}
	eventually(t, "the last acknowledgement", func() string {
		if p, _ := r.partition("t", 0); p.Position != 3 {
			return fmt.Sprint(p.Position)
		}
		return ""
	})
	p := r.all()[0]
	targetEnd{p}.Acknowledged(produce.Ack{Last: 50, Count: 1, TargetOffset: 2, Sequence: 4})
	targetEnd{p}.Acknowledged(produce.Ack{Last: 51, Count: 1, TargetOffset: 9, Sequence: 5}) // nor what comes behind it
	l.copied("t", 0, append(values("v", 0, 4), values("v", 2, 2)...)...)
	r.counted(status.ErrorDataLoss, "copying them again")
	l.source.write("t", 0, "v-4")
	l.copied("t", 0, append(values("v", 0, 4), values("v", 2, 3)...)...)
	l.saved("t", 0, 4)
}

// Without topic ids a target topic that is made again under the mirror shows by
// what it stores, or has forgotten.
func TestATargetWithoutTopicIDsThatIsMadeAgainIsCopiedAgain(t *testing.T) {
	l := newLabOf(t, newSide(t, "A"), newSide(t, "B", kfake.MaxVersions(kversion.V2_7_0())), resuming,
		func(f *config.Flow) { f.Refresh = time.Hour })
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 4)...)
	r := l.start()
	l.copied("t", 0, values("v", 0, 4)...)
	l.target.remove("A.t")
	l.target.create("A.t", 1)
	l.source.write("t", 0, "v-4")
	eventually(t, "all records, in order", func() string {
		got := l.target.values("A.t", 0)
		if n := len(got); n < 5 || !slices.Equal(got[n-5:], values("v", 0, 5)) {
			return fmt.Sprint(got)
		}
		return ""
	})
	r.counted(status.ErrorDataLoss, "copying from the beginning")
	l.saved("t", 0, 4)
}

// The same while the mirror was down.
func TestAnEmptyTargetWithoutTopicIDsIsCopiedAgain(t *testing.T) {
	l := newLabOf(t, newSide(t, "A"), newSide(t, "B", kfake.MaxVersions(kversion.V2_7_0())), resuming)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 4)...)
	r := l.start()
	l.copied("t", 0, values("v", 0, 4)...)
	l.saved("t", 0, 3)
	r.stop()
	l.target.remove("A.t")
	l.target.create("A.t", 1)
	r = l.start()
	l.copied("t", 0, values("v", 0, 4)...)
	r.counted(status.ErrorDataLoss, "copying from the beginning")
}

func TestATargetTopicThatSomebodyElseMadeAgainIsCopiedBehindTheirs(t *testing.T) {
	l := copiedSix(t, restarting)
	l.target.remove("A.t")
	l.target.create("A.t", 1)
	l.target.write("A.t", 0, "theirs")
	r := l.start()
	l.copied("t", 0, append([]string{"theirs"}, values("v", 0, 6)...)...)
	r.counted(status.ErrorLostPositions, "made again by somebody else")
}

// Records on the target and no position: the position is lost, whatever the flow's
// start is.
func TestATargetWithRecordsAndWithoutAPosition(t *testing.T) {
	l := newLab(t, func(f *config.Flow) { f.Start = config.Start{Kind: config.Latest} })
	l.source.create("t", 2)
	l.source.write("t", 0, values("v", 0, 3)...)
	l.target.create("A.t", 2)
	l.target.write("A.t", 0, "theirs")
	r := l.start()
	p := r.stalled("t", 0, `topic "A.t" on cluster "B" holds records`, `on_lost_positions = "restart"`)
	if p.StalledAt != 3 || p.Position != -1 {
		t.Errorf("stalled at %d with position %d, want 3 and -1", p.StalledAt, p.Position)
	}
	r.counted(status.ErrorLostPositions, "partition is stalled")
	l.source.write("t", 1, "other")
	l.copied("t", 1, "other")
	r.stop()
	// The next start is not the first, but this partition has not begun.
	l.cfg.OnLostPositions = config.Restart
	r = l.start()
	l.copied("t", 0, append([]string{"theirs"}, values("v", 0, 3)...)...)
	r.counted(status.ErrorLostPositions, "copying again, behind them")
}
