package plugins

import (
	"testing"

	"mirror/abi"
)

func TestRound(t *testing.T) {
	b := newBench(t, does(t, "p"))
	b.assign(0, 1)
	b.ack(0, copied(10, 19), copied(20, 24), empty(25, 25), copied(26, 29))
	b.ack(1, empty(10, 12))
	b.safe(0, 9)
	b.round(false)
	b.told("p", "on_partitions t/0=1@9 t/1=1@9", "on_commit t/0:10-24→110-124 t/0:25-25 t/0:26-29→126-129 t/1:10-12")
	b.safe(0, 9) // told, not flushed
	b.round(false)
	b.told("p")
	b.ack(1, copied(13, 14))
	b.round(true)
	b.told("p", "on_commit flush t/0:30-29 t/1:13-14→113-114")
	b.safe(0, 29)
	b.safe(1, 14)
	b.round(true)
	b.told("p")
	if w := b.Waiting(key(0)); w != 0 {
		t.Errorf("%d pieces wait", w)
	}
	if s := b.status("p"); s.State != Running || s.Calls[abi.OnCommit] != 2 || s.Calls[abi.OnPartitions] != 1 {
		t.Errorf("%+v", s)
	}
}
