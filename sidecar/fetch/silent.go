package fetch

import (
	"fmt"
	"time"

	"mirror/sidecar/wire"
)

// silence is how long a request may be unanswered before the cluster is asked who
// leads by now what it is about: far longer than a broker waits for something to
// send. One that hangs, or is cut off, does not say that others have taken over.
const silence = longPoll + 3*time.Second

// lookAgain is the time until the next look, while it stays so.
const lookAgain = time.Second

// asked is a request without an answer.
type asked struct {
	conn  *wire.Conn
	wants []want
	at    time.Time
}

// asks notes the request that is about to be sent, nil once it is answered.
func (l *link) asks(a *asked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = a
	if a != nil && l.patrol == nil {
		l.patrol = time.AfterFunc(silence, l.lookOut)
	}
}

// lookOut gives up on the connection once the request has been unanswered for long
// and others lead all that it asks for. Were it one partition of several that has
// moved, the broker would live, and answer.
func (l *link) lookOut() {
	l.mu.Lock()
	a := l.asked
	if a == nil {
		l.patrol = nil
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	wait := silence
	switch age := time.Since(a.at); {
	case age < silence:
		wait -= age
	case l.isHome(a.wants):
		l.fetcher.router.Stale()
		wait = lookAgain
	default:
		a.conn.Abandon(fmt.Errorf("source broker %d has not answered for %v, and others lead by now what it was asked for", l.node, age.Round(time.Second)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.patrol.Reset(wait)
}

// isHome says whether one of the wants is still to be asked for here.
func (l *link) isHome(wants []want) bool {
	for _, w := range wants {
		leader, _, ok := l.fetcher.o.Leaders.Leader(w.p.topic, w.p.number)
		if !ok {
			leader = -1
		}
		if w.p.home(l, leader) {
			return true
		}
	}
	return false
}

func (l *link) endPatrol() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.patrol != nil {
		l.patrol.Stop()
	}
}
