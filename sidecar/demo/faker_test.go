package demo

import (
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestTopicsCoverWhatAMirrorMeets(t *testing.T) {
	share := 0.0
	codecs := map[kgo.CompressionCodec]bool{}
	transactions, compacted := 0, 0
	for _, topic := range topics {
		share += topic.share
		codecs[topic.codec] = true
		if topic.transactions {
			transactions++
		}
		if topic.compacted {
			compacted++
		}
	}
	if share < 0.999 || share > 1.001 {
		t.Errorf("the shares add up to %v", share)
	}
	if len(codecs) != 5 || transactions != 1 || compacted != 1 {
		t.Errorf("%d codecs, %d transactional and %d compacted topics", len(codecs), transactions, compacted)
	}
}

func TestFakerIsRepeatable(t *testing.T) {
	for _, topic := range topics {
		a, b, c := newFaker(1, topic.partitions), newFaker(1, topic.partitions), newFaker(2, topic.partitions)
		same := true
		used := map[int32]bool{}
		for range 500 {
			x, y, z := topic.record(a), topic.record(b), topic.record(c)
			if !reflect.DeepEqual(x, y) {
				t.Fatalf("%s: %v and %v of one seed", topic.name, x, y)
			}
			same = same && reflect.DeepEqual(x, z)
			if x.Partition < 0 || x.Partition >= topic.partitions {
				t.Fatalf("%s: partition %d of %d", topic.name, x.Partition, topic.partitions)
			}
			used[x.Partition] = true
		}
		if same {
			t.Errorf("%s: another seed makes the same records", topic.name)
		}
		if len(used) != int(topic.partitions) {
			t.Errorf("%s: only partitions %v are used", topic.name, used)
		}
	}
}

// Records of one key stay in one partition, or their order would be lost.
func TestKeysStayInTheirPartition(t *testing.T) {
	for _, topic := range topics {
		if topic.name == "oddities" {
			continue // its keys do not come again
		}
		f := newFaker(1, topic.partitions)
		at := map[string]int32{}
		for range 5000 {
			r := topic.record(f)
			if r.Key == nil {
				continue
			}
			if p, ok := at[string(r.Key)]; ok && p != r.Partition {
				t.Fatalf("%s: key %s is in partitions %d and %d", topic.name, r.Key, p, r.Partition)
			}
			at[string(r.Key)] = r.Partition
		}
	}
}

func TestCustomersAreCompactable(t *testing.T) {
	f := newFaker(1, 2)
	founders := map[int32]string{}
	keys := map[string]int{}
	tombstones := 0
	for i := range 5000 {
		r := f.customer()
		keys[string(r.Key)]++
		if r.Value == nil {
			tombstones++
		}
		if i < 2 {
			founders[r.Partition] = string(r.Key)
		}
	}
	if len(keys) != customers+2 || tombstones == 0 || tombstones > 500 {
		t.Errorf("%d keys, %d tombstones", len(keys), tombstones)
	}
	for _, key := range founders {
		if keys[key] != 1 {
			t.Errorf("%s comes %d times, so the start of its log moves", key, keys[key])
		}
	}
	if len(founders) != 2 {
		t.Errorf("founders %v do not cover both partitions", founders)
	}
}

func TestOddities(t *testing.T) {
	f := newFaker(1, 1)
	type shape struct{ key, value string }
	seen := map[shape]bool{}
	headers := map[int]bool{}
	largest := 0
	for range 400 {
		r := f.oddity()
		seen[shape{kind(r.Key), kind(r.Value)}] = true
		headers[len(r.Headers)] = true
		largest = max(largest, len(r.Value))
	}
	for _, want := range []shape{{"null", "null"}, {"empty", "empty"}, {"some", "null"}, {"some", "empty"}, {"null", "some"}, {"some", "some"}} {
		if !seen[want] {
			t.Errorf("no record with a key that is %s and a value that is %s", want.key, want.value)
		}
	}
	if !headers[0] || !headers[2] || !headers[3] || largest != 60_000 {
		t.Errorf("headers %v, largest value %d", headers, largest)
	}
}

func kind(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) == 0:
		return "empty"
	default:
		return "some"
	}
}
