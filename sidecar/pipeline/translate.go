package pipeline

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/positions"
)

// question is what a lane's plugins are asked for somebody else.
type question struct {
	ctx    context.Context // ends when nobody waits for the answer
	asked  []plugins.GroupOffset
	answer chan<- answer // has room for it
}

type answer struct {
	translations []plugins.Translation
	err          error
}

// questionMost is how many offsets a lane is asked about at once: between two
// questions it tells its plugins and saves positions.
const questionMost = abi.MaxEntries

// errStopping is the answer of a flow that ends.
var errStopping = errors.New("the flow is stopping")

// translate asks the plugins where on the target groups go on: those of the lane that
// the partition belongs to, for they know what it has copied. There is one answer for
// each, in order. Until a lane's plugins are loaded it knows of nothing. Without a
// plugin that translates the error is plugins.ErrNoGroups; else it is ctx's, or the flow
// is stopping.
func (f *Flow) translate(ctx context.Context, asked []plugins.GroupOffset) ([]plugins.Translation, error) {
	if !f.translates() {
		return nil, plugins.ErrNoGroups
	}
	answers := make([]plugins.Translation, len(asked))
	parts := make([][]int, len(f.lanes))
	for n, g := range asked {
		answers[n] = plugins.Translation{Offset: -1, Reason: abi.NotKnown}
		i := f.laneOf(positions.Key{Topic: g.Topic, Partition: g.Partition})
		parts[i] = append(parts[i], n)
	}
	all, ctx := errgroup.WithContext(ctx)
	for i, l := range f.lanes {
		all.Go(func() error {
			for part := range slices.Chunk(parts[i], questionMost) {
				if err := l.translate(ctx, asked, part, answers); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	return answers, nil
}

// translates says whether there is a plugin that does, or may be once they are loaded.
func (f *Flow) translates() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.generation == nil {
		return len(f.cfg().Plugins) > 0
	}
	return anyTranslates(f.generation.modules)
}

// anyTranslates says whether one of them translates groups' offsets.
func anyTranslates(modules []plugins.Module) bool {
	return slices.ContainsFunc(modules, func(m plugins.Module) bool { return m.Has(abi.OnGroups) })
}

// translate has the lane's answers about some of what is asked.
func (l *lane) translate(ctx context.Context, asked []plugins.GroupOffset, part []int, answers []plugins.Translation) error {
	if h := l.hooks.Load(); h == nil || h.plugins() == nil {
		return nil
	}
	got := make(chan answer, 1)
	q := question{ctx: ctx, answer: got}
	for _, n := range part {
		q.asked = append(q.asked, asked[n])
	}
	select {
	case l.questions <- q:
	case <-l.over:
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case a := <-got:
		if errors.Is(a.err, plugins.ErrNoGroups) { // the others have changed their plugins already, or this one
			return nil
		}
		for i, t := range a.translations {
			answers[part[i]] = t
		}
		return a.err
	case <-ctx.Done(): // the lane answers all the same, to nobody
		return ctx.Err()
	}
}

// answer asks the lane's plugins. It is for the goroutine that calls them, until ctx
// ends; one call of them is not cut short because nobody waits for it.
func (l *lane) answer(ctx context.Context, q question) {
	a := answer{err: q.ctx.Err()}
	if h := l.hooks.Load(); a.err == nil && h != nil {
		a.translations, a.err = h.plugins().Groups(ctx, q.asked)
	}
	if ctx.Err() != nil {
		a = answer{err: errStopping}
	}
	q.answer <- a
}
