// Package reload says when a running mirror reads its config again: at a signal,
// at a request, and when the content of a file has changed. It does one reload
// at a time. What a reload does is not its business.
//
// reload.go has the loop, watch.go what a change of files is, path.go where in
// the file system to look for it.
package reload

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os"
	"time"

	"mirror/sidecar/status"
)

// Options of a Reloader.
type Options struct {
	// Do reads the config and applies it. It is called by one goroutine.
	Do func(ctx context.Context, trigger string) status.Reload
	// Files are watched. It is asked again after each reload, and every ten seconds for
	// those that are read beside the start. It says with each file the SHA-256 of what
	// was read of it (zero: nothing), which counts for files that were not watched before.
	Files func() map[string][sha256.Size]byte
	// Signals each ask for a reload.
	Signals <-chan os.Signal
	Log     *slog.Logger
}

// Reloader reloads when something calls for it.
type Reloader struct {
	o        Options
	requests chan chan<- status.Reload
	ended    chan struct{}
	settle   time.Duration
	poll     time.Duration
}

const (
	// settleTime is how long the content of the files has to stay as it is before
	// it counts: somebody may still be writing.
	settleTime = 300 * time.Millisecond
	// pollTime is how often the files are looked at without being told of
	// anything: not every file system tells.
	pollTime = 10 * time.Second
)

// New makes a reloader.
func New(o Options) *Reloader {
	return &Reloader{o: o, requests: make(chan chan<- status.Reload), ended: make(chan struct{}), settle: settleTime, poll: pollTime}
}

// ErrEnded says that the mirror is stopping and reloads no more.
var ErrEnded = errors.New("the mirror is stopping: nothing is reloaded any more")

// Request reloads and says what came of it. The error is ErrEnded, or ctx's. A
// reload that has begun goes on when ctx ends.
func (r *Reloader) Request(ctx context.Context) (status.Reload, error) {
	answer := make(chan status.Reload, 1)
	select {
	case r.requests <- answer:
	case <-ctx.Done():
		return status.Reload{}, ctx.Err()
	case <-r.ended:
		return status.Reload{}, ErrEnded
	}
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		return status.Reload{}, ctx.Err()
	}
}

// Run reloads until ctx ends.
func (r *Reloader) Run(ctx context.Context) {
	defer close(r.ended)
	w := newWatch(r.o.Files(), r.o.Log)
	defer w.close()
	poll := time.NewTicker(r.poll)
	defer poll.Stop()
	var settled <-chan time.Time // the next look at files that may have changed
	mayHave := func() {
		if settled == nil {
			settled = time.After(r.settle)
		}
	}
	// reload does it. What the files hold now is what it reads, or something older:
	// then they differ afterwards.
	reload := func(trigger string) status.Reload {
		w.look()
		w.accept()
		done := r.o.Do(ctx, trigger)
		w.follow(r.o.Files())
		if w.differs() {
			mayHave()
		}
		return done
	}
	if w.differs() { // since they were read for the start
		mayHave()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case answer := <-r.requests:
			answer <- reload(status.TriggerRequest)
		case <-r.o.Signals:
			reload(status.TriggerSignal)
		case e := <-w.events():
			if w.concerns(e) {
				mayHave()
			}
		case <-w.errors(): // it has lost events
			mayHave()
		case <-poll.C:
			w.follow(r.o.Files()) // and a look at them
			if w.differs() {
				mayHave()
			}
		case <-settled:
			settled = nil
			switch {
			case w.look():
				mayHave()
			case w.differs():
				reload(status.TriggerFile)
			}
		}
	}
}
