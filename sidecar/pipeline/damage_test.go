package pipeline

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"mirror/sidecar/batch"
	"mirror/sidecar/config"
	"mirror/sidecar/status"
)

func TestABatchDamagedOnItsWayIsFetchedAgain(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 3)...)
	l.source.write("t", 0, "v-3", "MARKER", "v-5")
	l.source.write("t", 0, values("v", 6, 3)...)
	l.source.net.set(spoil("MARKER", corruptTries-1))
	r := l.start()
	l.copied("t", 0, "v-0", "v-1", "v-2", "v-3", "MARKER", "v-5", "v-6", "v-7", "v-8")
	r.runs("t", 0)
	if n := r.Status().Errors[status.ErrorCorrupt]; n != corruptTries-1 {
		t.Errorf("%d damaged batches counted, want %d", n, corruptTries-1)
	}
	if n := l.log.Count("arrived damaged"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	if n := l.log.Count("stalled"); n != 0 {
		t.Errorf("a stall is logged %d times", n)
	}
}

func TestABatchThatStaysDamagedStallsItsPartitionAlone(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 2)
	l.source.write("t", 0, values("v", 0, 3)...)
	l.source.write("t", 0, "MARKER")
	l.source.net.set(spoil("MARKER", -1))
	r := l.start()
	if p := r.stalled("t", 0, "offset 3 cannot be read", "checksum"); p.StalledAt != 3 {
		t.Errorf("stalled at %d, want 3", p.StalledAt)
	}
	l.copied("t", 0, values("v", 0, 3)...)
	l.source.write("t", 1, "other")
	l.copied("t", 1, "other")
	// It is tried again each refresh, and says nothing more about it.
	before := r.Status().Errors[status.ErrorCorrupt]
	eventually(t, "more tries", func() string {
		if n := r.Status().Errors[status.ErrorCorrupt]; n < before+corruptTries {
			return fmt.Sprint(n)
		}
		return ""
	})
	for line, want := range map[string]int{"arrived damaged": 1, "partition is stalled": 1} {
		if n := l.log.Count(line); n != want {
			t.Errorf("%q is logged %d times", line, n)
		}
	}
	l.source.net.set(spoil("", 0))
	l.copied("t", 0, "v-0", "v-1", "v-2", "MARKER")
	r.runs("t", 0)
}

// The base offset is not under the checksum. A batch that seems to begin before
// the end of the one before it must not be taken for one that was cut.
func TestOffsetsThatGoBackAreDamage(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 3)...)
	l.source.write("t", 0, values("v", 3, 3)...)
	// The second batch's offset 3 becomes 2, in one answer: the first bit of the last
	// byte of eight.
	second := l.source.fetch("t", 0, 3)
	l.source.net.set(func(tp *tap) { tp.marker, tp.flips, tp.at = bytes.Clone(second[:16]), 1, 7 })
	r := l.start()
	l.copied("t", 0, values("v", 0, 6)...)
	if n := r.Status().Errors[status.ErrorCorrupt]; n != 1 {
		t.Errorf("%d damaged batches counted, want 1", n)
	}
}

func TestABombStalls(t *testing.T) {
	l := newLab(t, func(f *config.Flow) { f.Memory = 16 << 20 })
	l.source.create("t", 2)
	l.source.store("t", 0, bomb(t, maxDecompressed+1))
	if err := l.source.DeleteRecords("t", 0, 1); err != nil {
		t.Fatal(err)
	}
	r := l.start()
	if p := r.stalled("t", 0, "offset 1", "larger than 256 MiB uncompressed"); p.StalledAt != 1 {
		t.Errorf("stalled at %d, want 1", p.StalledAt)
	}
	l.source.write("t", 1, "other")
	l.copied("t", 1, "other")
}

// An unreadable body crosses raw: what it is worth is for consumers to find out.
// Where it has to be opened the partition stalls.
func TestABatchThatHasToBeOpenedAndCannotBeStalls(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 2)
	broken := func() batch.Batch {
		b := l.source.made(batch.Gzip, values("v", 0, 3)...)
		copy(b[61:], strings.Repeat("x", 20))
		return sealed(b)
	}
	l.source.store("t", 0, broken())
	if err := l.source.DeleteRecords("t", 0, 1); err != nil {
		t.Fatal(err)
	}
	l.source.store("t", 1, broken())
	r := l.start()
	r.stalled("t", 0, "offset 1 cannot be read", "gzip")
	eventually(t, "the other one on the target", func() string {
		if info := l.target.PartitionInfo("A.t", 1); info == nil || info.HighWatermark != 3 {
			return fmt.Sprintf("%+v", info)
		}
		return ""
	})
}

// bomb is a batch of three records whose body is that large when it is opened.
func bomb(t *testing.T, size int64) batch.Batch {
	var body bytes.Buffer
	z, err := zstd.NewWriter(&body)
	if err != nil {
		t.Fatal(err)
	}
	z.ResetContentSize(&body, size)
	if _, err := io.CopyN(z, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var w batch.Builder
	for range 3 {
		w.Add(batch.Record{Value: []byte("v")})
	}
	b, err := w.Build(nil, batch.None)
	if err != nil {
		t.Fatal(err)
	}
	b = append(b[:61], body.Bytes()...)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	b[22] = byte(batch.Zstd)
	return sealed(b)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
