package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/config"
	"mirror/sidecar/status"
)

// What the brokers of one topic answer for long shows as a stall of that topic,
// keeps no memory and no other topic from working, and ends by itself.
func TestATopicThatTakesNothingForLong(t *testing.T) {
	l := newLab(t)
	l.source.create("bad", 6)
	l.source.create("good", 1)
	r := l.start()
	r.runs("good", 0)
	l.target.refuse("A.bad")
	big := strings.Repeat("x", 100<<10)
	var want []string
	for i := range 4 {
		for n := range int32(6) {
			l.source.write("bad", n, fmt.Sprint(i, big))
		}
		want = append(want, fmt.Sprint(i, big))
	}
	r.stalled("bad", 0, "cannot be stored on the target", "NOT_ENOUGH_REPLICAS", "source offset 0")
	for i := range 20 {
		l.source.write("good", 0, fmt.Sprint(i, big))
	}
	eventually(t, "the other topic", func() string {
		if n := len(l.target.values("A.good", 0)); n != 20 {
			return fmt.Sprintf("%d of 20 records are there; %d bytes are in use", n, r.Status().MemoryInUse)
		}
		return ""
	})
	l.target.heal()
	for n := range int32(6) {
		l.copied("bad", n, want...)
		r.runs("bad", n)
	}
	if n := l.log.Count("trouble, trying again"); n != 6 {
		t.Errorf("the trouble is logged %d times for 6 partitions", n)
	}
	if n := l.log.Count("copying again"); n != 6 {
		t.Errorf("its end is logged %d times for 6 partitions", n)
	}
}

// A batch that the target refuses stalls its partition at the record, others go
// on, and it passes once the target has changed its mind.
func TestARefusedRecordStallsUntilItPasses(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 2)
	r := l.start()
	r.runs("t", 0)
	l.target.faults = l.target.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: "A.t", Partitions: []int32{0}, Err: kerr.PolicyViolation, Count: -1,
	})
	l.source.write("t", 0, values("v", 0, 3)...)
	if p := r.stalled("t", 0, "the target refuses source offset 0", "POLICY_VIOLATION"); p.StalledAt != 0 || p.Position != -1 {
		t.Errorf("stalled at %d with position %d, want 0 and -1", p.StalledAt, p.Position)
	}
	l.source.write("t", 1, "other")
	l.copied("t", 1, "other")
	if err := l.target.faults.Wait(t.Context(), 3); err != nil { // tried again each refresh
		t.Fatal(err)
	}
	if n := l.log.Count("partition is stalled"); n != 1 {
		t.Errorf("the stall is logged %d times", n)
	}
	l.target.heal()
	l.copied("t", 0, values("v", 0, 3)...)
	r.runs("t", 0)
}

func TestPositionsThatCannotBeSavedAreRetried(t *testing.T) {
	l := newLab(t, func(f *config.Flow) { f.Lanes = 2 }) // one has nothing to save
	l.source.create("t", 1)
	r := l.start()
	r.runs("t", 0)
	l.target.faults = l.target.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: l.cfg.Positions.Topic, Err: kerr.TopicAuthorizationFailed, Count: -1,
	})
	l.source.write("t", 0, values("v", 0, 3)...)
	l.copied("t", 0, values("v", 0, 3)...) // records do not wait for positions
	copied := time.Now()
	eventually(t, "tries", func() string {
		if n := r.Status().Errors[status.ErrorPositions]; n < 3 {
			return fmt.Sprint(n)
		}
		return ""
	})
	if s := r.Status(); !s.PositionsSave.Before(copied) || !strings.Contains(s.PositionsProblem, "TOPIC_AUTHORIZATION_FAILED") {
		t.Errorf("positions are said to be saved at %v, with the problem %q", s.PositionsSave, s.PositionsProblem)
	}
	if n := l.log.Count("positions cannot be saved"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	l.target.heal()
	l.saved("t", 0, 2)
	eventually(t, "the report of it", func() string {
		if s := r.Status(); !s.PositionsSave.After(copied) || s.PositionsProblem != "" {
			return fmt.Sprint(s.PositionsSave, s.PositionsProblem)
		}
		return ""
	})
	if n := l.log.Count("positions are saved again"); n != 1 {
		t.Errorf("the end is logged %d times", n)
	}
}

// A flow waits for clusters that are not there yet, and says so.
func TestAFlowStartsWhenItsClustersAreThere(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, "v")
	l.target.net.set(goDown)
	r := l.start()
	eventually(t, "the reason", func() string {
		if s := r.Status(); s.State != status.Starting || s.Reason == "connecting" {
			return fmt.Sprintf("%s: %s", s.State, s.Reason)
		}
		return ""
	})
	l.target.net.set(work)
	l.copied("t", 0, "v")
}

func TestConnectionsThatAreCutLoseAndRepeatNothing(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 3)
	r := l.start()
	for n := range int32(3) {
		r.runs("t", n)
	}
	var want []string
	for round := range 6 {
		for i := range 5 {
			vs := values(fmt.Sprintf("r%d", round), 2*i, 2)
			for n := range int32(3) {
				l.source.write("t", n, vs...)
			}
			want = append(want, vs...)
		}
		if round%2 == 0 {
			l.target.net.set(goDown)
			l.target.net.set(work)
		} else {
			l.source.net.set(goDown)
			l.source.net.set(work)
		}
	}
	for n := range int32(3) {
		l.copied("t", n, want...)
	}
	// A poll is always on its way to the source; to the target there may be nothing.
	if s := r.Status(); s.Errors[status.ErrorSourceConnection] == 0 {
		t.Errorf("errors %v", s.Errors)
	}
	// A cut is one line for each cluster, not one for each partition.
	if n := l.log.Count("trouble, trying again"); n > 0 {
		t.Errorf("partitions log %d lines", n)
	}
}

func TestTroubleShowsOnceItLastsAndIsSaidOnce(t *testing.T) {
	var tr trouble
	if !tr.begin(errors.New("read 127.0.0.1:4711: reset")) {
		t.Error("the first is not worth a line")
	}
	if tr.begin(errors.New("read 127.0.0.1:4712: reset")) {
		t.Error("the same with another port is worth a line")
	}
	if !tr.begin(errors.New("refused")) {
		t.Error("another one is not worth a line")
	}
	if err := tr.lasting(); err != nil {
		t.Errorf("it shows at once: %v", err)
	}
	tr.since = time.Now().Add(-troubleShows)
	if err := tr.lasting(); err == nil || err.Error() != "refused" {
		t.Errorf("what lasts is %v", err)
	}
	tr.end()
	if err := tr.lasting(); err != nil {
		t.Errorf("it shows when it is over: %v", err)
	}
	if tr.begin(errors.New("refused")) {
		t.Error("what comes and goes is worth a line each time")
	}
}

// A partition whose topic goes while it begins is not begun any more.
func TestAPartitionThatLeavesWhileItBeginsIsGone(t *testing.T) {
	l := newLab(t, func(f *config.Flow) { f.Memory = 1 << 20 })
	l.source.create("t", 1)
	hold, held := make(chan struct{}), make(chan struct{})
	l.target.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
		l.target.DropControl()
		close(held)
		l.target.SleepControl(func() { <-hold })
		return nil, nil, false
	})
	r := l.start()
	<-held
	l.source.remove("t")
	eventually(t, "the end of its partition", func() string {
		if ps := r.Status().Partitions; len(ps) != 0 {
			return fmt.Sprintf("%+v", ps)
		}
		return ""
	})
	close(hold)
	l.source.create("u", 1)
	r.runs("u", 0)
	r.agenda.mu.Lock()
	defer r.agenda.mu.Unlock()
	if len(r.agenda.due) != 0 {
		t.Errorf("%d partitions are still to begin", len(r.agenda.due))
	}
}
