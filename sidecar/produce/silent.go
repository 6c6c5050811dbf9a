package produce

import (
	"fmt"
	"time"

	"mirror/sidecar/wire"
)

// silence is how long a request may be unanswered before the cluster is asked who
// leads by now what it is about. A broker that hangs, or is cut off, does not say
// that others have taken over.
const silence = 3 * time.Second

// lookAgain is the time until the next look, while it stays so.
const lookAgain = time.Second

// asked is a request without an answer.
type asked struct {
	conn  *wire.Conn
	items []item
	at    time.Time
}

// asks notes a request that is about to be sent, and returns the time.
func (l *link) asks(conn *wire.Conn, items []item) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.asked = append(l.asked, asked{conn, items, now})
	if l.patrol == nil {
		l.patrol = time.AfterFunc(silence, l.lookOut)
	}
	return now
}

// lookOut gives up on the connection once the oldest request has been unanswered
// for long and others lead all that it is about: what is resent to them is stored
// once, whatever came of it here. Were it one partition of several that has moved,
// the broker would live, and answer.
func (l *link) lookOut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.asked) == 0 {
		l.patrol = nil
		return
	}
	first, wait := l.asked[0], silence
	switch age := time.Since(first.at); {
	case age < silence:
		wait -= age
	case l.leadsAny(first.items):
		l.producer.router.Stale()
		wait = lookAgain
	default:
		first.conn.Abandon(fmt.Errorf("target broker %d has not answered for %v, and others lead by now what it was sent", l.node, age.Round(time.Second)))
	}
	l.patrol.Reset(wait)
}

func (l *link) leadsAny(items []item) bool {
	for _, x := range items {
		if l.leads(x.p) {
			return true
		}
	}
	return false
}

func (l *link) leads(q *Partition) bool {
	node, _, ok := l.producer.o.Leaders.Leader(q.topic, q.number)
	return ok && node == l.node
}

// leadsReady says whether the broker leads a partition that is ready; if none,
// they go to who does.
func (l *link) leadsReady() bool {
	for _, q := range l.isReady() {
		if l.leads(q) {
			return true
		}
	}
	for _, q := range l.takeReady() {
		q.kick()
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
