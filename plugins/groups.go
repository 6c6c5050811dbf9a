package plugins

import (
	"context"
	"errors"
	"time"

	"mirror/abi"
)

// GroupOffset is what a consumer group has committed of a partition on the source.
type GroupOffset struct {
	Key
	Group       string
	Offset      int64 // the next to read
	LeaderEpoch int32 // as committed; -1: none
	Metadata    string
	LogStart    int64 // first offset of the source's log; -1: unknown
}

// Translation is where on the target a group should go on.
type Translation struct {
	Offset  int64 // the next to read; -1 where the outcome is abi.NoOffset
	Outcome abi.Outcome
	Reason  abi.Reason
	Run     abi.Run // that the plugin says it goes by; the zero Run: it says none
	Plugin  string  // whose answer it is
}

// ErrNoGroups is what Groups returns where no plugin translates.
var ErrNoGroups = errors.New("no plugin translates groups' offsets")

// Groups asks the plugin that translates. There is one answer for each, in order. Of a
// partition that this instance of the plugin has not been told of, or that it has
// halted, the answer is abi.NoOffset, abi.NotKnown. Where the hook fails, or wants to
// be asked another time, it is abi.NoOffset, abi.NoReason: what fails together is
// asked again partition by partition, of a fresh instance. It is for the goroutine that
// runs rounds. Beside ErrNoGroups its only error is ctx's.
func (l *Lane) Groups(ctx context.Context, asked []GroupOffset) ([]Translation, error) {
	m := l.translator()
	if m == nil {
		return nil, ErrNoGroups
	}
	answers, all := make([]Translation, len(asked)), make([]int, len(asked))
	reason := abi.NotKnown
	if m.muted != nil {
		reason = abi.NoReason
	}
	for n := range asked {
		answers[n], all[n] = Translation{Offset: -1, Reason: reason, Plugin: m.p.spec.Name}, n
	}
	for todo := [][]int{all}; len(todo) > 0; {
		part := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if able, err := l.able(ctx, m); !able || err != nil {
			return answers, err
		}
		l.mu.Lock()
		f, told, rest := m.asks(asked, part)
		l.mu.Unlock()
		if len(rest) > 0 {
			todo = append(todo, rest)
		}
		if len(told) == 0 {
			continue
		}
		again, err := l.ask(ctx, m, f, asked, told, answers)
		if err != nil {
			return nil, err
		}
		todo = append(todo, again...)
	}
	return answers, nil
}

// translator is the plugin that translates, nil: none does.
func (l *Lane) translator() *member {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.members {
		if m.p.Has(abi.OnGroups) {
			return m
		}
	}
	return nil
}

// able says whether the plugin can be asked. A fresh instance is told first what the
// one before it knew. Its only error is ctx's.
func (l *Lane) able(ctx context.Context, m *member) (bool, error) {
	if m.muted != nil {
		return false, ctx.Err()
	}
	if m.i == nil {
		l.mu.Lock()
		m.seal()
		l.mu.Unlock()
		if err := l.run(ctx, m, false); err != nil {
			return false, err
		}
	}
	l.mu.Lock()
	waits := m.broken != nil || time.Now().Before(m.notBefore)
	l.mu.Unlock()
	if waits || m.i != nil {
		return !waits, ctx.Err()
	}
	i, err := m.p.start(ctx, l.number) // one that there was nothing to tell
	if err != nil {
		return false, l.notBegun(m, err)
	}
	m.i = i
	return true, nil
}

// asks is a frame about the first of some of what is asked, as far as there is room:
// which are in it, and which are left. The caller holds the lock.
func (m *member) asks(asked []GroupOffset, part []int) (f *frame, told, rest []int) {
	f = &frame{hook: abi.OnGroups}
	for at, n := range part {
		q := m.queues[asked[n].Key]
		if q == nil || !q.introduced || q.halted != nil || q.view.Kind == abi.Revoked {
			continue
		}
		if !f.addGroup(q, &asked[n], m.most) {
			return f, told, part[at:]
		}
		told = append(told, n)
	}
	return f, told, nil
}

// maxText is the longest text that an entry can have, in bytes.
const maxText = 1<<16 - 1

// addGroup adds an entry, if there is room.
func (f *frame) addGroup(q *queue, g *GroupOffset, most int) bool {
	metadata := g.Metadata[:min(len(g.Metadata), maxText)]
	text := len(g.Group) + len(g.Topic) + len(metadata)
	if !f.fits(text, most) {
		return false
	}
	f.about = append(f.about, q)
	f.text += text
	f.groups = append(f.groups, abi.Group{Group: g.Group, Topic: g.Topic, Metadata: metadata, Partition: g.Partition,
		Offset: g.Offset, LogStart: g.LogStart, Position: q.view.Position, TargetEnd: q.view.TargetEnd, LeaderEpoch: g.LeaderEpoch})
	return true
}

// ask calls the hook with a frame about those told, and keeps the answers. What is to
// be asked again is the result, each part in frames of its own. Its only error is ctx's.
func (l *Lane) ask(ctx context.Context, m *member, f *frame, asked []GroupOffset, told []int, answers []Translation) (again [][]int, err error) {
	began := time.Now()
	emits, err := m.i.tell(ctx, f.hook, 0, 0, f.about, f.fill)
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, errNoRoom) {
		if len(told) > 1 {
			m.halve(f)
			return [][]int{told}, nil
		}
		err = noRoom(f.hook)
	}
	failure, ended := asFailure(err)
	m.called(f.hook, took, failure)
	switch {
	case ended != nil:
		m.discard()
		return nil, ended
	case failure == nil:
		for _, e := range emits {
			n := told[e.Entry]
			a := &answers[n]
			a.Offset, a.Outcome, a.Reason, a.Run = e.Offset, e.Outcome, e.Reason, e.Run
		}
		m.well(f.hook)
		return nil, nil
	}
	for _, n := range told {
		answers[n].Reason = abi.NoReason
	}
	if failure.Status == abi.Retry { // it is asked again when it is time anyway
		return nil, nil
	}
	m.discard()
	m.say(failure.Hook, failure.Error())
	if failure.trapped() && m.asking.trip(time.Now()) {
		m.mute(failure)
		return nil, nil
	}
	if parts := byPartition(asked, told); len(parts) > 1 {
		return parts, nil
	}
	return nil, nil
}

// mute ends the questions, until the plugin is swapped. Nothing halts for that: what
// groups commit must not stop the copying. The caller holds the lock.
func (m *member) mute(why *Failure) {
	m.muted = why
	m.log.Error("the plugin failed too often at groups' offsets, it is not asked for them until plugins are reloaded; copying goes on", "failures", breakAt, "within", breakTime, "err", why)
}

// byPartition splits some of what is asked.
func byPartition(asked []GroupOffset, some []int) (parts [][]int) {
	at := map[Key]int{}
	for _, n := range some {
		i, ok := at[asked[n].Key]
		if !ok {
			i = len(parts)
			at[asked[n].Key] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], n)
	}
	return parts
}
