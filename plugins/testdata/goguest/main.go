//go:build wasip1

// Command goguest is a plugin in Go for the tests: it emits an offset sync for each
// entry and allocates while it does, counts what it is told, and says what it sees
// in records.
package main

import (
	"errors"

	"mirror/abi/guest"
)

var (
	calls   byte
	counter guest.Metric
	garbage [][]byte
)

func init() {
	guest.OnInit(func(f *guest.Frame) (err error) {
		if v, _ := guest.Config("in.key"); v != "value" {
			return guest.Fail(guest.BadInput, "in.key is not value in "+f.Flow())
		}
		if v, _ := guest.Config("mode"); v == "state" {
			if err := f.EmitSchema("v1"); err != nil {
				return err
			}
		}
		counter, err = guest.NewCounter("seen", "kind", "commit")
		return err
	})
	guest.OnPartitions(func(p *guest.Partitions) error {
		for e := range p.All() {
			if e.Event() != guest.Assigned || e.TargetTopic() != "a.t" || e.LogStart() != 0 || e.TargetEnd() < 10 || e.Position() < 9 || e.Partition() < 0 {
				return errors.New("an unexpected partition: " + e.Topic())
			}
			if err := p.EmitRecord(e, guest.Record{Topic: "frames", Partition: -1, Timestamp: p.Now(), Value: p.Bytes()}); err != nil {
				return err
			}
		}
		return nil
	})
	guest.OnCommit(commit)
	guest.OnTick(func(p *guest.Partitions) error {
		guest.Log(guest.Info, "tick")
		return nil
	})
	guest.OnSave(func(f *guest.Frame) error { return f.EmitSave([]byte{calls}) })
	guest.OnRestore(func(f *guest.Frame) error {
		calls = f.Blob()[0]
		guest.Log(guest.Warn, "restored")
		return nil
	})
}

func commit(c *guest.Commits) error {
	calls++
	switch mode, _ := guest.Config("mode"); mode {
	case "panic":
		panic("at the disco")
	case "index":
		return errors.New(string(c.Bytes()[c.Len()+1<<30]))
	case "error":
		return errors.New("out of luck")
	case "retry":
		if c.Attempt() < 2 {
			return guest.Retry
		}
	case "state":
		for e := range c.All() {
			if err := state(e); err != nil {
				return err
			}
		}
	case "leak": // a goroutine of one's own is scheduled, and what is dropped is collected
		garbage = nil
		for range 64 {
			garbage = append(garbage, make([]byte, 16<<10))
		}
	}
	for e := range c.All() {
		counter.Add(int64(e.Records()))
		if e.DstLast() < 0 {
			continue
		}
		if err := c.EmitOffsetSync(e, e.SrcLast(), e.DstLast()); err != nil {
			return err
		}
	}
	return nil
}

// state counts in the entry's partition, and says in a key how often that was.
func state(e guest.Commit) error {
	counted, err := e.Get("records")
	if err != nil {
		return err
	}
	counted = append(counted, make([]byte, e.Records())...)
	key, err := e.Next("records")
	if err != nil {
		return err
	}
	if key != "" {
		if err := e.Delete(key); err != nil {
			return err
		}
	}
	if err := e.Put("records", counted); err != nil {
		return err
	}
	return e.Put("times-"+string(rune('0'+calls)), []byte{})
}

func main() {}
