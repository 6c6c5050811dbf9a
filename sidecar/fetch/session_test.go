package fetch

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// talk is what was asked for.
type talk struct {
	mu       sync.Mutex
	requests []said
}

type said struct {
	id, epoch  int32
	partitions int
}

func (k *talk) keep(q *kmsg.FetchRequest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.requests = append(k.requests, said{q.SessionID, q.SessionEpoch, partitions(q)})
}

func (k *talk) all() []said {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.requests)
}

func partitions(q *kmsg.FetchRequest) (n int) {
	for _, t := range q.Topics {
		n += len(t.Partitions)
	}
	return n
}

func TestOnlyWhatChangesIsAskedForAgain(t *testing.T) {
	b := newBench(t, kfake.NumBrokers(1))
	b.create("t", crowd)
	var k talk
	b.control(func(_ int32, q *kmsg.FetchRequest) *kmsg.FetchResponse {
		k.keep(q)
		return nil
	})
	var rs []*reader
	for n := range int32(crowd) {
		rs = append(rs, b.reader("t", n, 0))
	}
	b.write("t", 7, 1, 1)
	b.run(rs...)
	rs[7].gets(1, 0, 1)
	for n := range 5 {
		b.write("t", 7, 1, 1)
		rs[7].gets(1, 0, int64(n+2))
	}
	all := 0
	for i, q := range k.all() {
		if q.epoch > 0 && q.partitions == crowd {
			t.Errorf("request %d of the session names all partitions", i)
		}
		all += q.partitions
	}
	// Each once, and partition 7 again for each of its six records. It may take two
	// requests until all have joined.
	if all < crowd || all > crowd+6 {
		t.Errorf("%d partitions were named in all", all)
	}
}

func TestASessionThatTheBrokerForgetsBeginsAnew(t *testing.T) {
	for _, code := range []*kerr.Error{kerr.FetchSessionIDNotFound, kerr.InvalidFetchSessionEpoch, kerr.FetchSessionTopicIDError} {
		t.Run(code.Message, func(t *testing.T) {
			b := newBench(t, kfake.NumBrokers(1))
			b.create("t", 1)
			var k talk
			told := false
			b.control(func(_ int32, q *kmsg.FetchRequest) *kmsg.FetchResponse {
				k.keep(q)
				if q.SessionEpoch < 2 || told {
					return nil
				}
				told = true
				resp := q.ResponseKind().(*kmsg.FetchResponse)
				resp.ErrorCode = code.Code
				return resp
			})
			r := b.reader("t", 0, 0)
			b.run(r)
			for n := range 5 {
				b.write("t", 0, 1, 1)
				r.gets(1, 0, int64(n+1))
			}
			full := 0
			for _, q := range k.all() {
				if q.id == 0 && q.epoch == 0 {
					full++
				}
			}
			if full != 2 {
				t.Errorf("%d sessions were begun, want another after the first", full)
			}
			if n := b.failures(); n != 0 {
				t.Errorf("%d failures were told of", n)
			}
		})
	}
}

func TestBrokersWithoutSessionsOrIDs(t *testing.T) {
	p := &Partition{topic: "t"}
	withID := want{p: p, id: [16]byte{1}}
	cases := []struct {
		name         string
		broker       int16 // its highest version
		w            want
		version      int16
		sessionEpoch int32
	}{
		{"new", 17, withID, 17, 0},
		{"a topic without an id", 17, want{p: p}, 12, 0},
		{"no sessions", 6, want{p: p}, 6, noSession},
	}
	for _, c := range cases {
		var s session
		r := kmsg.NewPtrFetchRequest()
		s.add(r, c.broker, []want{c.w}, func(*Partition) int32 { return -1 })
		if r.Version != c.version || r.SessionEpoch != c.sessionEpoch || partitions(r) != 1 {
			t.Errorf("%s: version %d, session epoch %d", c.name, r.Version, r.SessionEpoch)
		}
	}
}

func TestTheEpochOfASessionGoesRoundToOne(t *testing.T) {
	s := session{id: 5, epoch: math.MaxInt32}
	if _, err := s.answered(&kmsg.FetchResponse{SessionID: 5}); err != nil || s.epoch != 1 {
		t.Errorf("epoch %d, %v", s.epoch, err)
	}
	if _, err := s.answered(&kmsg.FetchResponse{}); err != nil || s.id != 0 || s.epoch != 0 {
		t.Errorf("a broker without room: session %d, epoch %d, %v", s.id, s.epoch, err)
	}
}

// A request of a session takes nothing for the partitions that have not changed.
func BenchmarkIdlePartitions(b *testing.B) {
	var wants []want
	for n := range int32(2000) {
		wants = append(wants, want{p: &Partition{topic: "t", number: n}, id: [16]byte{1}, offset: 1})
	}
	none := func(*Partition) int32 { return 1 }
	var s session
	s.add(kmsg.NewPtrFetchRequest(), idVersion, wants, none)
	s.id, s.epoch = 1, 1
	b.ReportAllocs()
	for b.Loop() {
		wants[7].offset++
		r := kmsg.NewPtrFetchRequest()
		if s.add(r, idVersion, wants, none); partitions(r) != 1 {
			b.Fatalf("%d partitions are named", partitions(r))
		}
	}
}
