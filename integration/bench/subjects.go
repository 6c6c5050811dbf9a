package main

import (
	"context"
	"os"
)

// job is one run of one subject.
type job struct {
	benchCase
	dataset
	image  string
	mirror string // the mirror's program
	absent string // another one, that has no plugins
	dir    string // for files
	from   string // address of the source, near or far
	to     string
	alias  string // of the source: targets are <alias>.<topic>; no two jobs have the same
	light  string // a second topic, of one partition, still empty
	target *broker
}

// topics are what a subject copies.
func (j job) topics() []string { return []string{j.Name, j.light} }

func (j job) copyOf(topic string) string { return j.alias + "." + topic }

// arrived is how many of the case's records the target has.
func (j job) arrived(ctx context.Context) (int64, error) {
	return j.target.ends(ctx, j.copyOf(j.Name), j.busy())
}

// subject is something that copies.
type subject struct {
	name, about string
	// apart says that it has nothing to do with the brokers: there is no latency of
	// records, and their CPU time is not its doing.
	apart  bool
	start  func(job) (*running, error)
	docker bool // it runs in a container
	// named subjects run only where they are asked for.
	named bool
	// check looks, once all has arrived, whether the subject did what it is to be
	// measured for. nil: nothing to look at.
	check func(context.Context, job) error
}

// running is a subject at work.
type running struct {
	pid  int           // whose CPU and memory are its own
	stop func()        // ends it, waits, and leaves nothing of it
	log  func() string // the end of what it wrote
	// done says how much of total, which stands for so much payload, has arrived.
	done           func(context.Context) (int64, error)
	total, payload int64
}

var allSubjects = []subject{
	{name: "copy", about: "reads and writes the same bytes, socket to socket: the floor", apart: true, start: startCopy},
	{name: "kgo", about: "a plain loop with franz-go: fetch, produce, each partition to its own", start: startLoop},
	{name: "mm2", about: "MirrorMaker 2, defaults", docker: true, start: func(j job) (*running, error) { return startMirrorMaker(j, nil) }},
	{name: "mm2-tuned", about: "MirrorMaker 2, 256 KiB batches, linger 20 ms, the source's codec, 2,000 records a poll", docker: true, start: startTuned},
	{name: mirrorName, about: "the mirror of this module, defaults: the plugin offset-sync is on", start: startMirror, check: wroteSyncs},
	{name: offName, about: "the same with the plugin switched off", start: startOff, check: wroteNoSyncs, named: true},
	{name: absentName, about: "the program of -absent, one that has no plugins", start: startAbsent, check: wroteNoSyncs, named: true},
}

// own is a child of this program or the mirror, as a subject.
func (j job) own(p *process) *running {
	return &running{pid: p.pid(), stop: p.stop, log: p.log, done: j.arrived, total: j.Records, payload: j.Payload}
}

// prepare makes the copies' topics, for all subjects alike: how long a broker takes to
// make a thousand partitions is none's doing.
func (j job) prepare(ctx context.Context) error {
	for topic, partitions := range map[string]int{j.Name: j.Partitions, j.light: 1} {
		if err := j.target.create(ctx, j.copyOf(topic), partitions); err != nil {
			return err
		}
	}
	return nil
}

func startLoop(j job) (*running, error) {
	p, err := launchSelf(append([]string{loopChild, j.from, j.to, j.Codec, j.alias}, j.topics()...)...)
	if err != nil {
		return nil, err
	}
	return j.own(p), nil
}

// copied is how much the copy copies at least, the data over and over: it would be
// too quick to measure.
const copied = 2 << 30

func startCopy(j job) (*running, error) {
	times := 1 + copied/j.Stored
	ends, err := newEnds(times * j.Stored)
	if err != nil {
		return nil, err
	}
	from, to := ends.source.Addr().String(), ends.target.Addr().String()
	var far *link
	if j.Far != "" {
		address := map[string]*string{"source": &from, "target": &to}[j.Far]
		if far, err = newLink(*address, oneWay); err != nil {
			ends.close()
			return nil, err
		}
		*address = far.address()
	}
	p, err := launchSelf(copyChild, from, to)
	stop := func() {
		if p != nil {
			p.stop()
		}
		ends.close()
		if far != nil {
			far.close()
		}
	}
	if err != nil {
		stop()
		return nil, err
	}
	return &running{pid: p.pid(), stop: stop, log: p.log, total: times * j.Stored, payload: times * j.Payload,
		done: func(context.Context) (int64, error) { return ends.arrived.Load(), nil }}, nil
}

// children are what this program does as a child of itself, by its first
// argument. They return only when they fail.
var children = map[string]func(args []string) error{loopChild: loop, copyChild: copyBytes}

func launchSelf(args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return launch(self, args...)
}
