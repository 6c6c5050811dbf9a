package pipeline

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/abi"
	"mirror/sidecar/config"
)

// events are those that the plugin echo was told of a topic's partitions, in order.
func (l *lab) events(topic string) (all []abi.Partition) {
	l.Helper()
	for _, text := range l.target.values("frames", 0) {
		f, err := abi.ParseFrame([]byte(text))
		if err != nil {
			l.Fatal(err)
		}
		for i := range f.Count() {
			if f.Hook() == abi.OnPartitions && f.Partition(i).Topic == topic {
				all = append(all, f.Partition(i))
			}
		}
	}
	return all
}

// endsOnce is ends of epoch 0 until somebody has asked for it: then the log is whole again.
func (s *side) endsOnce(end int64) {
	var truncated, asked atomic.Bool
	truncated.Store(true)
	s.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(kmsg.Request) (kmsg.Response, error, bool) {
		s.KeepControl()
		asked.Store(true)
		return nil, nil, false
	})
	s.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		s.KeepControl()
		if asked.Load() {
			truncated.Store(false)
		}
		return nil, nil, false
	})
	s.ends(&truncated, 0, end)
}

// A plugin learns what becomes of a partition that it knows: its log is truncated, its
// topic is made again, and then gone.
func TestWhatBecomesOfAPartitionIsTold(t *testing.T) {
	l := newLab(t, echo, restarting)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 4)...)
	r := l.start()
	l.saved("t", 0, 3)
	l.source.endsOnce(2)
	want := append(values("v", 0, 4), values("v", 2, 2)...)
	l.copied("t", 0, want...)
	l.saved("t", 0, 3)
	first := l.source.TopicInfo("t").TopicID
	l.source.remove("t")
	l.source.create("t", 1)
	l.source.write("t", 0, values("w", 0, 2)...)
	l.copied("t", 0, append(want, values("w", 0, 2)...)...)
	l.saved("t", 0, 1)
	second := l.source.TopicInfo("t").TopicID
	l.source.remove("t")
	var said []string
	eventually(t, "the end of the topic", func() string {
		said = nil
		for _, e := range l.events("t") {
			id := map[[16]byte]string{first: "first", second: "second"}[e.TopicID]
			said = append(said, fmt.Sprintf("%d of the %s: position %d, target's end %d", e.Event, id, e.Position, e.TargetEnd))
		}
		if n := len(said); n == 0 || !strings.HasPrefix(said[n-1], fmt.Sprint(abi.Revoked)) {
			return fmt.Sprint(said)
		}
		return ""
	})
	wanted := []string{
		fmt.Sprintf("%d of the first: position -1, target's end 0", abi.Assigned),
		fmt.Sprintf("%d of the first: position 1, target's end 4", abi.Truncated),
		fmt.Sprintf("%d of the second: position -1, target's end 6", abi.Recreated),
		fmt.Sprintf("%d of the second: position 1, target's end -1", abi.Revoked),
	}
	if fmt.Sprint(said) != fmt.Sprint(wanted) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(wanted, "\n"))
	}
	r.stop()
	// What a plugin says has the flow, the lane and its name.
	if n := l.log.Count("msg=closing flow=A->B plugin=echo lane=0 from=guest"); n != 1 {
		t.Errorf("its last word is logged %d times:\n%s", n, l.log)
	}
}

// What is stored when plugins are replaced is told to those that ran then: one that comes
// begins with what comes.
func TestWhatIsStoredBeforeASwapIsTheOldOnes(t *testing.T) {
	l := newLab(t, echo)
	l.source.create("t", 1)
	r := l.start()
	l.source.write("t", 0, values("first", 0, 2)...)
	l.saved("t", 0, 1) // so what it writes to is there
	const end = 7
	for n := 2; n < end; n++ {
		l.source.write("t", 0, fmt.Sprint("v-", n))
		eventually(t, "an acknowledgement", func() string {
			if p, _ := r.partition("t", 0); p.Position != int64(n) {
				return fmt.Sprint("the position is ", p.Position)
			}
			return ""
		})
		r.apply(echo, func(f *config.Flow) { f.Plugins[0].Config = map[string]any{"n": fmt.Sprint(n)} })
	}
	l.saved("t", 0, end-1)
	for _, text := range l.target.values("frames", 0) {
		f, err := abi.ParseFrame([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		generation, _ := f.Extra(abi.TagGeneration)
		for i := range f.Count() {
			if f.Hook() != abi.OnCommit || f.Commit(i).SrcLast < f.Commit(i).SrcFirst {
				continue
			}
			c := f.Commit(i)
			if c.SrcLast >= 2 && (binary.LittleEndian.Uint64(generation) != uint64(c.SrcFirst)-1 || c.SrcLast != c.SrcFirst) {
				t.Errorf("offsets %d to %d are told to generation %d", c.SrcFirst, c.SrcLast, generation[0])
			}
		}
	}
	r.stop()
}
