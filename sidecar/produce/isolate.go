package produce

import "time"

// A broker works on one request of a connection at a time, and a request is
// answered when the followers of all its partitions have it. So one partition whose
// followers are slow makes all wait that share its connection. Which one it is the
// broker says itself: it gives up waiting after the request's time-out, and then
// answers REQUEST_TIMED_OUT for that partition and stored for the others. On the
// connection that all share the time-out is short, therefore; a partition that
// exceeds it goes on over another connection, where there is more time, and comes
// back once its answers are quick again.

const (
	// sharedTime is how long the broker may wait for the followers of partitions
	// that share a connection. Followers that keep up take milliseconds.
	sharedTime = 3 * time.Second
	// asideTime is the same for those that were found to be slow.
	asideTime = 30 * time.Second
	// asideLinks is how many more connections to a broker there are for slow
	// partitions. They share these.
	asideLinks = 4
	// quickAnswer is what an answer takes at most where followers keep up again,
	// and quickFor how long all answers have to be quick.
	quickAnswer = sharedTime / 6
	quickFor    = 10 * time.Second
)

// isolate has the partition go on over another connection, unless it does. That
// gets nothing before all is answered that is on its way over this one (take).
func (p *Partition) isolate() {
	p.slowAt = time.Now()
	if p.aside.Load() == 0 {
		p.aside.Store(p.producer.turn.Add(1)%asideLinks + 1)
	}
}

// calm takes the time of an answer, and ends an isolation.
func (p *Partition) calm(took time.Duration) {
	switch {
	case p.aside.Load() == 0:
	case took > quickAnswer:
		p.slowAt = time.Now()
	case time.Since(p.slowAt) >= quickFor:
		p.aside.Store(0)
	}
}

// Isolated says that the partition has a connection other than most, because its
// followers are slow.
func (p *Partition) Isolated() bool { return p.aside.Load() != 0 }
