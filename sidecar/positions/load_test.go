package positions

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestLoadWhatConnectWrote(t *testing.T) {
	tg := newTarget(t)
	s := tg.open(t)
	// A Connect cluster's topic has more than MirrorMaker in it.
	tg.write(t,
		mm2("t", 0, `{"offset":1}`), mm2("t", 1, `{"offset":1}`), mm2("t", 2, `{"offset":1}`), mm2("t", 3, `{"offset":-1}`),
		mm2("t", 0, `{"offset":9}`),
		mm2("t", 1, ""),                              // removed
		mm2("t", 2, ""), mm2("t", 2, `{"offset":7}`), // and back
		mm2("gone", 0, ""),
		&kgo.Record{
			Key:   []byte(`["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]`),
			Value: []byte(`{"offset":0}`),
		},
		&kgo.Record{Key: []byte(`["MirrorSourceConnector",{"cluster":"C","partition":0,"topic":"t"}]`), Value: []byte(`{"offset":3}`)},
		&kgo.Record{Key: []byte(`["files",{"filename":"x"}]`), Value: []byte(`{"position":3}`)},
	)
	wantLoad(t, s, map[Key]Position{{"t", 0}: Plain(9), {"t", 2}: Plain(7), {"t", 3}: Plain(-1)})
	if strings.Contains(tg.log.String(), "WARN") {
		t.Errorf("warned of ordinary records: %s", tg.log)
	}
}

func TestLoadSaysOnceWhatItCannotRead(t *testing.T) {
	tg := newTarget(t)
	s := tg.open(t)
	tg.write(t,
		mm2("t", 0, `{"offset":4}`),
		mm2("t", 0, `{"offset":"five"}`), // the last one that can be read stays
		mm2("t", 1, `garbage`),
		&kgo.Record{Key: []byte("\xff\xfe"), Value: []byte(`{"offset":1}`)},
		&kgo.Record{Value: []byte(`{"offset":1}`)},
	)
	wantLoad(t, s, map[Key]Position{{"t", 0}: Plain(4)})
	log := tg.log.String()
	if strings.Count(log, "WARN") != 1 || !strings.Contains(log, "records=4") {
		t.Errorf("log\n%swant one warning of 4 records", log)
	}
}

// begin starts a transaction of a producer of its own.
func (tg *target) begin(t *testing.T, id string, records ...*kgo.Record) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(tg.ListenAddrs()...), kgo.DefaultProduceTopic(topic), kgo.TransactionalID(id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return cl
}

func end(t *testing.T, cl *kgo.Client, how kgo.TransactionEndTry) {
	t.Helper()
	if err := cl.EndTransaction(t.Context(), how); err != nil {
		t.Fatal(err)
	}
}

func TestLoadReadsCommitted(t *testing.T) {
	tg := newTarget(t)
	s := tg.open(t)
	// Partition by partition: ends in a commit marker, in aborted records and
	// their marker, has aborted ones in the middle, has nothing but aborted ones.
	tg.write(t, mm2("t", 0, `{"offset":1}`), mm2("t", 1, `{"offset":1}`), mm2("t", 2, `{"offset":1}`))
	end(t, tg.begin(t, "one", mm2("t", 0, `{"offset":2}`)), kgo.TryCommit)
	end(t, tg.begin(t, "two", mm2("t", 1, `{"offset":2}`), mm2("t", 2, `{"offset":2}`), mm2("t", 3, `{"offset":2}`)), kgo.TryAbort)
	tg.write(t, mm2("t", 2, `{"offset":3}`))
	wantLoad(t, s, map[Key]Position{{"t", 0}: Plain(2), {"t", 1}: Plain(1), {"t", 2}: Plain(3)})

	// One that is open hides what comes after it, and does not hold a load up.
	open := tg.begin(t, "three", mm2("t", 0, `{"offset":4}`))
	tg.write(t, mm2("t", 0, `{"offset":5}`))
	wantLoad(t, s, map[Key]Position{{"t", 0}: Plain(2), {"t", 1}: Plain(1), {"t", 2}: Plain(3)})
	end(t, open, kgo.TryAbort)
	wantLoad(t, s, map[Key]Position{{"t", 0}: Plain(5), {"t", 1}: Plain(1), {"t", 2}: Plain(3)})
}

func TestLoadFromATrimmedTopic(t *testing.T) {
	tg := newTarget(t)
	if err := tg.CreateTopic(topic, 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	s := tg.open(t)
	tg.write(t, mm2("t", 0, `{"offset":1}`), mm2("t", 1, `{"offset":1}`), mm2("t", 1, `{"offset":2}`))
	if err := tg.DeleteRecords(topic, 0, 2); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, s, map[Key]Position{{"t", 1}: Plain(2)})
	if err := tg.DeleteRecords(topic, 0, 3); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, s, map[Key]Position{})
}

func TestLoadInManyAnswers(t *testing.T) {
	tg := newTarget(t)
	if err := tg.CreateTopic(topic, 2, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	s := tg.open(t)
	// Six records of 0.9 MB cannot be in one answer of a megabyte.
	blob := strings.Repeat("x", 900_000)
	want := map[Key]Position{}
	for n := range int32(6) {
		tg.write(t, mm2("t", n, `{"offset":1,"blob":"`+blob+`"}`))
		want[Key{"t", n}] = Plain(1)
	}
	fetches := tg.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1})
	wantLoad(t, s, want)
	if fetches.Hits() < 3 {
		t.Errorf("%d fetches, want more than one for each partition", fetches.Hits())
	}
}

func TestLoadErrors(t *testing.T) {
	for _, c := range []struct {
		err   *kerr.Error
		count int
		fails bool
	}{
		{kerr.NotLeaderForPartition, 3, false},
		{kerr.UnknownTopicOrPartition, 1, false},
		{kerr.TopicAuthorizationFailed, 1, true},
	} {
		t.Run(c.err.Message, func(t *testing.T) {
			tg := newTarget(t)
			s := tg.open(t)
			tg.write(t, mm2("t", 0, `{"offset":1}`))
			fault := tg.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: c.err, Count: c.count})
			got, err := s.Load(t.Context())
			if fault.Hits() != c.count {
				t.Errorf("the fault was met %d times, want %d", fault.Hits(), c.count)
			}
			switch {
			case c.fails && (!errors.Is(err, c.err) || !strings.Contains(err.Error(), topic)):
				t.Errorf("got %v", err)
			case !c.fails && (err != nil || got[Key{"t", 0}] != Plain(1)):
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestLoadRefusesDamage(t *testing.T) {
	tg := newTarget(t)
	s := tg.open(t)
	batch := make([]byte, 80)
	batch[11] = 68 // length, after the base offset
	batch[16] = 2  // magic; no CRC fits
	tg.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		req := r.(*kmsg.FetchRequest)
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		rt := kmsg.NewFetchResponseTopic()
		rt.Topic, rt.TopicID = req.Topics[0].Topic, req.Topics[0].TopicID
		rp := kmsg.NewFetchResponseTopicPartition()
		rp.Partition = req.Topics[0].Partitions[0].Partition
		rp.HighWatermark, rp.LastStableOffset, rp.LogStartOffset = 1, 1, 0
		rp.RecordBatches = batch
		rt.Partitions = append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
	if _, err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v", err)
	}
}

func TestLoadEndsWithItsContext(t *testing.T) {
	tg := newTarget(t)
	s := tg.open(t)
	fault := tg.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.NotLeaderForPartition, Count: -1})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Load(ctx)
		done <- err
	}()
	if err := fault.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
