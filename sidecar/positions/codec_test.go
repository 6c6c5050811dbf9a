package positions

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

// controls are all control characters of ASCII, in order.
var controls = func() string {
	var b strings.Builder
	for r := range rune(0x20) {
		b.WriteRune(r)
	}
	return b.String()
}()

// Keys and partitions (of 25) as Kafka 4.3.1 makes them: JsonConverter without
// schemas on [connector, HashMap{topic, partition, cluster}], and
// toPositive(Utils.murmur2(key)) % 25.
var javaKeys = []struct {
	connector, cluster string
	key                Key
	json               string
	partition          int
}{
	{"MirrorSourceConnector", "A", Key{"t", 0},
		`["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]`, 7},
	{"MirrorSourceConnector", "primary", Key{"orders", 11},
		`["MirrorSourceConnector",{"cluster":"primary","partition":11,"topic":"orders"}]`, 15},
	{"MirrorSourceConnector", "primary", Key{"heartbeats", 0},
		`["MirrorSourceConnector",{"cluster":"primary","partition":0,"topic":"heartbeats"}]`, 19},
	{`my "conn"`, `a\b/<&>`, Key{"x.y_z-1", 1<<31 - 1},
		`["my \"conn\"",{"cluster":"a\\b/<&>","partition":2147483647,"topic":"x.y_z-1"}]`, 7},
	{"MirrorSourceConnector", "ü漢😀\u2028\u007f", Key{"t", 3},
		"[\"MirrorSourceConnector\",{\"cluster\":\"ü漢\\uD83D\\uDE00\u2028\u007f\",\"partition\":3,\"topic\":\"t\"}]", 7},
	{"MirrorSourceConnector", controls, Key{"t", 1},
		`["MirrorSourceConnector",{"cluster":"` +
			`\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000B\f\r\u000E\u000F` +
			`\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001A\u001B\u001C\u001D\u001E\u001F` +
			`","partition":1,"topic":"t"}]`, 15},
}

func TestKeyIsWhatConnectWrites(t *testing.T) {
	partitioner := kgo.StickyKeyPartitioner(nil).ForTopic("mm2-offsets.A.internal")
	for _, j := range javaKeys {
		key := appendKey(nil, j.connector, j.cluster, j.key)
		if string(key) != j.json {
			t.Errorf("key\n got %s\nwant %s", key, j.json)
		}
		if got := partitioner.Partition(&kgo.Record{Key: key}, 25); got != j.partition {
			t.Errorf("%s goes to partition %d, want %d as in Java", key, got, j.partition)
		}
		if got, err := parseKey(key, j.connector, j.cluster); err != nil || got != j.key {
			t.Errorf("%s is read as %v, %v", key, got, err)
		}
	}
}

func TestParseKey(t *testing.T) {
	cases := []struct {
		key  string
		want Key
		err  error
	}{
		{`["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]`, Key{"t", 0}, nil},
		{` [ "MirrorSourceConnector" , { "topic" : "t", "partition":7,"cluster":"\u0041" } ] `, Key{"t", 7}, nil},

		{`["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]`, Key{}, errForeign},
		{`["MirrorSourceConnector",{"cluster":"B","partition":0,"topic":"t"}]`, Key{}, errForeign},
		{`["MirrorSourceConnector",{"cluster":null,"partition":0,"topic":"t"}]`, Key{}, errForeign},
		{`["MirrorSourceConnector",{"Cluster":"A","partition":0,"topic":"t"}]`, Key{}, errForeign},
		{`["MirrorSourceConnector",{"cluster":"A","Partition":0,"topic":"t"}]`, Key{}, errForeign},
		{`["MirrorSourceConnector",{"cluster":"A","partition":0}]`, Key{}, errForeign},
		{`["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t","more":1}]`, Key{}, errForeign},
		{`["jdbc",{}]`, Key{}, errForeign},

		{``, Key{}, errGarbage},
		{`null`, Key{}, errGarbage},
		{`"MirrorSourceConnector"`, Key{}, errGarbage},
		{`["MirrorSourceConnector"]`, Key{}, errGarbage},
		{`["MirrorSourceConnector",{},{}]`, Key{}, errGarbage},
		{`["MirrorSourceConnector",7]`, Key{}, errGarbage},
		{`[7,{"cluster":"A","partition":0,"topic":"t"}]`, Key{}, errGarbage},
		{`["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}`, Key{}, errGarbage},
		{`["MirrorSourceConnector",{"cluster":"A","partition":-1,"topic":"t"}]`, Key{}, errGarbage},
		{`["MirrorSourceConnector",{"cluster":"A","partition":0.5,"topic":"t"}]`, Key{}, errGarbage},
		{`["MirrorSourceConnector",{"cluster":"A","partition":2147483648,"topic":"t"}]`, Key{}, errGarbage},
		{`["MirrorSourceConnector",{"cluster":"A","partition":null,"topic":"t"}]`, Key{}, errGarbage},
		{`["MirrorSourceConnector",{"cluster":"A","partition":"0","topic":"t"}]`, Key{}, errGarbage},
		{`["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":""}]`, Key{}, errGarbage},
		{`["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":null}]`, Key{}, errGarbage},
	}
	for _, c := range cases {
		got, err := parseKey([]byte(c.key), "MirrorSourceConnector", "A")
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: got %v, %v, want %v, %v", c.key, got, err, c.want, c.err)
		}
	}
}

// full has in every field what tells it from the others. The topic ids are what
// Kafka's Uuid prints for (0x0123456789abcdef, 0xfedcba9876543210) and (-1, -2).
var (
	full = Position{
		Offset: 199, ProducerID: 5001, ProducerEpoch: 3, Sequence: 77, TargetOffset: 210,
		TargetTopicID:     [16]byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10},
		SourceTopicID:     [16]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 254},
		SourceLeaderEpoch: 9,
		SourceEpochs:      Epochs{}.Seen(4, 100).Seen(9, 150),
	}
	fullJSON = `{"offset":199,"producerId":5001,"producerEpoch":3,"sequence":77,"targetOffset":210,` +
		`"targetTopicId":"ASNFZ4mrze_-3LqYdlQyEA","sourceTopicId":"_____________________g","sourceLeaderEpoch":9,"sourceEpochs":"4@100,9@150"}`
)

func TestValue(t *testing.T) {
	if got := appendValue(nil, full); string(got) != fullJSON {
		t.Errorf("value\n got %s\nwant %s", got, fullJSON)
	}
	with := func(old, new string) string {
		s := strings.Replace(fullJSON, old, new, 1)
		if s == fullJSON {
			t.Fatalf("%s is not in the value", old)
		}
		return s
	}
	alone := full
	alone.SourceEpochs = Epochs{}
	cases := []struct {
		value string
		want  Position
		ok    bool
	}{
		{fullJSON, full, true},
		{with(`{"offset":199`, `{"later":[1], "offset" : 199`), full, true},
		{`{"offset":199}`, Plain(199), true},
		{`{"offset":-1}`, Plain(-1), true},
		{`{"offset":0}`, Plain(0), true},
		{`{}`, Plain(-1), true}, // MirrorMaker's unwrapOffset: -1 without the field
		{`{"offset":null}`, Plain(-1), true},
		{`{"Offset":5}`, Plain(-1), true}, // Java's fields have a case

		// What is not whole is not ours to use.
		{`{"offset":199,"producerId":5001,"producerEpoch":3,"sequence":77}`, Plain(199), true},
		{with(`"sequence":77,`, ``), Plain(199), true},
		{with(`"sequence":77`, `"sequence":null`), Plain(199), true},
		{with(`"producerEpoch":3`, `"producerEpoch":32768`), Plain(199), true},
		{with(`"producerId":5001`, `"producerId":"5001"`), Plain(199), true},
		{with(`EA"`, `"`), Plain(199), true},
		{with(`ASNF`, `*SNF`), Plain(199), true},

		// The leader epochs are useful, no more.
		{with(`,"sourceEpochs":"4@100,9@150"`, ``), alone, true},
		{with(`"4@100,9@150"`, `null`), alone, true},
		{with(`"4@100,9@150"`, `"4@100,9@"`), alone, true},
		{with(`"4@100,9@150"`, `[4,9]`), alone, true},

		{``, Position{}, false}, // tombstone
		{` null `, Position{}, false},
	}
	for _, c := range cases {
		got, ok, err := parseValue([]byte(c.value))
		if err != nil || ok != c.ok || got != c.want {
			t.Errorf("%s: got %+v, %v, %v, want %+v, %v", c.value, got, ok, err, c.want, c.ok)
		}
	}
	for _, value := range []string{
		`7`, `"x"`, `[1]`, `{`, `{"offset":-2}`, `{"offset":1.5}`, `{"offset":"1"}`, `{"offset":9223372036854775808}`, "\x00\x01",
	} {
		if got, _, err := parseValue([]byte(value)); err == nil {
			t.Errorf("%s is read as %+v", value, got)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	id := rapid.Custom(func(t *rapid.T) (id [16]byte) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		return id
	})
	rapid.Check(t, func(t *rapid.T) {
		connector, cluster := rapid.String().Draw(t, "connector"), rapid.String().Draw(t, "cluster")
		k := Key{
			Topic:     rapid.StringMatching(`[a-zA-Z0-9._-]{1,249}`).Draw(t, "topic"),
			Partition: rapid.Int32Min(0).Draw(t, "partition"),
		}
		key := appendKey(nil, connector, cluster, k)
		if got, err := parseKey(key, connector, cluster); err != nil || got != k {
			t.Fatalf("%s is read as %v, %v", key, got, err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, key); err != nil || !bytes.Equal(compact.Bytes(), key) {
			t.Fatalf("%s is not compact JSON: %v", key, err)
		}

		p := Position{
			Offset:            rapid.Int64Min(-1).Draw(t, "offset"),
			ProducerID:        rapid.Int64().Draw(t, "producer id"),
			ProducerEpoch:     rapid.Int16().Draw(t, "producer epoch"),
			Sequence:          rapid.Int32().Draw(t, "sequence"),
			TargetOffset:      rapid.Int64().Draw(t, "target offset"),
			TargetTopicID:     id.Draw(t, "target topic"),
			SourceTopicID:     id.Draw(t, "source topic"),
			SourceLeaderEpoch: rapid.Int32().Draw(t, "leader epoch"),
		}
		value := appendValue(nil, p)
		if got, ok, err := parseValue(value); err != nil || !ok || got != p {
			t.Fatalf("%s is read as %+v, %v, %v", value, got, ok, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(javaKeys[0].json))
	f.Add([]byte(fullJSON))
	f.Add([]byte(`{"offset":199}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if k, err := parseKey(data, "MirrorSourceConnector", "A"); err == nil && (k.Topic == "" || k.Partition < 0) {
			t.Errorf("key %q is read as %v", data, k)
		}
		if p, ok, err := parseValue(data); err == nil && ok && p.Offset < -1 {
			t.Errorf("value %q is read as %+v", data, p)
		}
	})
}
