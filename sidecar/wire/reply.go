package wire

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// answer is what a call's done is given.
type answer struct {
	resp  kmsg.Response
	frame *Frame
	err   error
}

// reply is where one answer passes from the reader to a waiting goroutine, or is dropped when that
// waits no longer.
type reply struct {
	ch      chan answer
	settled atomic.Bool // the answer is in ch, or nobody wants it
}

func newReply() *reply {
	return &reply{ch: make(chan answer, 1)}
}

// done is the call's done.
func (r *reply) done(resp kmsg.Response, frame *Frame, err error) {
	switch {
	case !r.settled.Swap(true):
		r.ch <- answer{resp, frame, err}
	case frame != nil:
		frame.Release()
	}
}

// wait returns the answer, or false when stop was closed before it came.
func (r *reply) wait(stop <-chan struct{}) (answer, bool) {
	select {
	case a := <-r.ch:
		return a, true
	case <-stop:
	}
	if r.settled.Swap(true) {
		return <-r.ch, true
	}
	return answer{}, false
}
