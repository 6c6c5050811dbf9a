package offsetsync

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"mirror/abi"
)

func (g *guest) save() []byte {
	g.t.Helper()
	g.frame.Begin(abi.OnSave, 0)
	emits, err := g.call(abi.OnSave)
	if err != nil || len(emits) != 1 || emits[0].Kind != abi.EmitSave || emits[0].Entry != abi.NoEntry {
		g.t.Fatalf("save: %v, %v", emits, err)
	}
	return bytes.Clone(emits[0].Data)
}

func (g *guest) restore(blob []byte) error {
	g.frame.Begin(abi.OnRestore, 0)
	g.frame.Extra(abi.TagBlob, blob)
	_, err := g.call(abi.OnRestore)
	return err
}

func TestSaved(t *testing.T) {
	old := plugin(t)
	other := run(5, 7, 1)
	other.Topic, other.Partition = strings.Repeat("u", 249), 1<<31-1
	same(t, "records", old.tell(0, run(3, 9, 20), other), "3:20", fmt.Sprintf("%s-%d 5:1", other.Topic, other.Partition))

	blob := old.save()
	want := []byte{1}
	add := func(topic string, partition uint32, up, down, due uint64, held byte) {
		want = append(append(want, byte(len(topic))), topic...)
		want = binary.LittleEndian.AppendUint32(want, partition)
		for _, o := range []uint64{up, down, due} {
			want = binary.LittleEndian.AppendUint64(want, o)
		}
		want = append(want, held)
	}
	add("t", 0, 9, 26, 20, 1)
	add(other.Topic, 1<<31-1, 7, 3, 1, 1)
	if !bytes.Equal(blob, want) {
		t.Errorf("saved\n%x, want\n%x", blob, want)
	}

	g := plugin(t)
	if err := g.restore(blob); err != nil {
		t.Fatal(err)
	}
	same(t, "what was held back", g.tell(abi.Flush, nothing(10, 9)), "9:26")
	same(t, "going on", g.tell(0, run(10, 110, 27)), "104:121")
	if again := plugin(t); again.restore(g.save()) != nil || !bytes.Equal(again.save(), g.save()) {
		t.Error("saved, restored and saved again it is not the same")
	}
}

func TestRestoreOfWhatIsNotOurs(t *testing.T) {
	g := plugin(t)
	g.tell(0, run(3, 9, 20))
	blob := g.save()
	broken := map[string][]byte{"empty": {}, "another version": append([]byte{2}, blob[1:]...), "more": append(bytes.Clone(blob), 0)}
	for n := range len(blob) - 1 {
		if n > 1 {
			broken[fmt.Sprint("cut after ", n)] = blob[:n]
		}
	}
	with := func(at int, b byte) []byte {
		c := bytes.Clone(blob)
		c[at] = b
		return c
	}
	broken["no name"] = with(1, 0)
	broken["a negative offset"] = with(14, 0xff)
	broken["due after the last"] = with(23, 27)
	for what, b := range broken {
		g := plugin(t)
		if err := g.restore(b); err == nil || !strings.Contains(err.Error(), "bad input: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// More than a save may have: what fits is saved.
func TestSaveOfVeryManyPartitions(t *testing.T) {
	const partitions, size = 4000, 30 + 249
	g := plugin(t, "translate", "false")
	var entries []abi.Commit
	for p := range int32(partitions) {
		c := run(0, 0, int64(p))
		c.Topic, c.Partition = strings.Repeat("t", 249), p
		entries = append(entries, c)
	}
	if n := len(g.commit(0, entries...)); n != partitions {
		t.Fatalf("%d syncs, want %d", n, partitions)
	}
	blob := g.save()
	if len(blob) > abi.MaxSave || len(blob) <= abi.MaxSave-size || (len(blob)-1)%size != 0 {
		t.Errorf("saved %d bytes: %d are the limit, a partition has %d", len(blob), abi.MaxSave, size)
	}
	if err := plugin(t).restore(blob); err != nil {
		t.Error(err)
	}
}
