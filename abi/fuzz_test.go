package abi

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// Whatever is taken for a frame can be read in full, and written again says the
// same.
func FuzzParseFrame(f *testing.F) {
	for _, g := range goldenFrames(f) {
		f.Add(g.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := ParseFrame(b)
		if err != nil {
			if !errors.Is(err, ErrFrame) {
				t.Fatalf("%v is no ErrFrame", err)
			}
			return
		}
		var e Encoder
		e.Begin(fr.Hook(), fr.Flags())
		read := func(f Frame) (all []any) {
			for i := range f.Count() {
				switch f.Hook() {
				case OnCommit:
					all = append(all, f.Commit(i))
				case OnPartitions, OnTick:
					all = append(all, f.Partition(i))
				case OnGroups:
					all = append(all, f.Group(i))
				}
			}
			return all
		}
		entries := read(fr)
		for _, x := range entries {
			switch x := x.(type) {
			case Commit:
				e.Commit(x)
			case Partition:
				e.Partition(x)
			case Group:
				e.Group(x)
			}
		}
		for tag, x := range fr.Extras() {
			e.Extra(tag, x)
		}
		most := e.Size()
		again, err := e.Finish()
		if err != nil {
			if most > MaxFrame { // texts that shared bytes do not any more
				return
			}
			t.Fatal(err)
		}
		if len(again) > most {
			t.Fatalf("%d bytes, Size said %d", len(again), most)
		}
		fr2, err := ParseFrame(again)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(entries, read(fr2)) {
			t.Fatalf("%v\nbecame\n%v", entries, read(fr2))
		}
		for tag, x := range fr.Extras() {
			if y, ok := fr2.Extra(tag); !ok || tagTwice(fr, tag) == 1 && !bytes.Equal(x, y) {
				t.Fatalf("extra %d: %q became %q", tag, x, y)
			}
		}
	})
}

func tagTwice(f Frame, t Tag) (n int) {
	for tag := range f.Extras() {
		if tag == t {
			n++
		}
	}
	return n
}

// Whatever is taken for an emit is the one way to write what it says.
func FuzzParseEmit(f *testing.F) {
	for _, g := range goldenEmits {
		f.Add(AppendEmit(nil, g.emit))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEmit(b)
		if err != nil {
			if !errors.Is(err, ErrEmit) {
				t.Fatalf("%v is no ErrEmit", err)
			}
			return
		}
		if again := AppendEmit(nil, e); !bytes.Equal(again, b) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}
