package pipeline

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"mirror/sidecar/batch"
	"mirror/sidecar/config"
	"mirror/sidecar/positions"
	"mirror/sidecar/status"
)

func TestRecordsCrossInOrderWhateverTheirCodec(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 5)
	want := make([][]string, 5)
	for n := range int32(5) {
		for round := range 4 {
			vs := values(fmt.Sprintf("p%d", n), 3*round, 3)
			l.source.store("t", n, l.source.made(batch.Codec(n), vs...))
			want[n] = append(want[n], vs...)
		}
	}
	r := l.start()
	for n := range int32(5) {
		l.copied("t", n, want[n]...)
	}
	eventually(t, "the report", func() string {
		var records, batches uint64
		for _, p := range r.Status().Partitions {
			records += p.Records
			batches += p.Batches[status.PathRaw] + p.Batches[status.PathMerged] + p.Batches[status.PathReencoded]
			if p.State != status.Running || p.Lag != 0 || p.Position != 11 {
				return fmt.Sprintf("%+v", p)
			}
		}
		if records != 60 || batches != 20 {
			return fmt.Sprintf("%d records in %d batches, want 60 in 20", records, batches)
		}
		return ""
	})
}

func TestARestartGoesOnWhereTheLastRunEnded(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 2)
	l.source.write("t", 0, values("v", 0, 10)...)
	for run := 1; run <= 3; run++ {
		r := l.start()
		l.copied("t", 0, values("v", 0, 10*run)...)
		l.copied("t", 1)
		r.stop()
		source, target := l.source.TopicInfo("t"), l.target.TopicInfo("A.t")
		ps := l.positions()
		got := ps[positions.Key{Topic: "t"}]
		if got.ProducerID < 0 {
			t.Errorf("run %d: no producer in %+v", run, got)
		}
		want := positions.Position{
			Offset: int64(10*run - 1), ProducerID: got.ProducerID, ProducerEpoch: got.ProducerEpoch, Sequence: 9,
			TargetOffset: int64(10*run - 1), TargetTopicID: target.TopicID, SourceTopicID: source.TopicID,
			SourceEpochs: positions.Epochs{}.Seen(0, 0),
		}
		if got != want {
			t.Errorf("run %d: position %+v, want %+v", run, got, want)
		}
		// A partition without records has a position, too: the next start is no first one.
		empty := ps[positions.Key{Topic: "t", Partition: 1}]
		if empty.Offset != -1 || empty.TargetOffset != -1 || empty.Sequence != -1 || empty.SourceTopicID != source.TopicID {
			t.Errorf("run %d: position of an empty partition %+v", run, empty)
		}
		l.source.write("t", 0, values("v", 10*run, 10)...)
	}
}

// Before Kafka 3.1 fetches know no topic ids, before 2.8 nothing does, and nobody
// says which producers a partition has seen.
func TestOldBrokersAreMirrored(t *testing.T) {
	for name, versions := range map[string]func() *kversion.Versions{
		"2.4": kversion.V2_4_0, "2.7": kversion.V2_7_0, "3.0": kversion.V3_0_0,
	} {
		t.Run(name, func(t *testing.T) {
			old := kfake.MaxVersions(versions())
			l := newLabOf(t, newSide(t, "A", old), newSide(t, "B", old), func(f *config.Flow) { f.Resume = true })
			l.source.create("t", 2)
			for run := 1; run <= 2; run++ {
				l.source.write("t", 0, values("v", 3*run-3, 3)...)
				r := l.start()
				l.copied("t", 0, values("v", 0, 3*run)...)
				r.stop()
			}
		})
	}
}

func TestAPositionOfMirrorMakerIsGoneOnFrom(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 10)...)
	s := l.store()
	if err := s.Save(t.Context(), map[positions.Key]positions.Position{{Topic: "t"}: positions.Plain(3)}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	l.start()
	l.copied("t", 0, values("v", 4, 6)...)
}

func TestWhereAFlowBegins(t *testing.T) {
	for name, c := range map[string]struct {
		start config.Start
		want  int // first value copied
	}{
		"earliest":      {config.Start{Kind: config.Earliest}, 0},
		"latest":        {config.Start{Kind: config.Latest}, 9},
		"time":          {config.Start{Kind: config.AtTime, At: at(1004)}, 3},
		"before all":    {config.Start{Kind: config.AtTime, At: at(1)}, 0},
		"later than it": {config.Start{Kind: config.AtTime, At: at(99999999)}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, func(f *config.Flow) { f.Start = c.start })
			l.source.create("t", 1)
			for i := range 3 { // the time is that of a batch's first record or later
				b := l.source.made(batch.None, values("v", 3*i, 3)...)
				l.source.store("t", 0, later(b, int64(4*i)))
			}
			r := l.start()
			r.runs("t", 0)
			l.source.create("new", 1) // what comes later begins at its beginning
			l.source.write("new", 0, "n")
			l.source.write("t", 0, "v-9")
			l.copied("t", 0, values("v", c.want, 10-c.want)...)
			l.copied("new", 0, "n")
		})
	}
}
