package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/plugins"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
)

// Options say where the state of a plugin is.
type Options struct {
	Cluster *cluster.Cluster // the target
	Name    string           // see TopicName
	Schema  string           // whose keys are read and written
	Create  config.Create    // for the topic, when it is missing
	Log     *slog.Logger
}

// Topic is a plugin's state, as one schema writes it: a plugins.Store. What is kept of
// all partitions is in memory, from Open on. Its methods may be called by several
// goroutines, Close once all others have returned.
type Topic struct {
	o      Options
	writer *cluster.Writer

	turn    chan struct{}         // holds one token: whoever took it may read or write, and use what follows
	id      [16]byte              // the topic's; zero: not known
	run     stamp                 // of the last record written
	next    map[int32]int64       // by partition: the offset that is read or written next
	seen    map[plugins.Key]stamp // the highest of a source partition, up to there
	others  int                   // records of other schemas
	garbage int                   // records that are no state
	policy  string                // of cleanup, as it was looked at last
	another bool                  // it is not the topic that it was: lost has said so

	mu   sync.Mutex
	kept map[plugins.Key]*plugins.Kept
	held map[plugins.Key]bool // by lanes
}

// Open reads what there is; where there is no topic, that is nothing. It is made with
// the first Write.
func Open(ctx context.Context, o Options) (*Topic, error) {
	t := &Topic{
		o: o, writer: cluster.NewWriter(o.Cluster, kgo.RecordPartitioner(kgo.ManualPartitioner())),
		turn: make(chan struct{}, 1), next: map[int32]int64{}, seen: map[plugins.Key]stamp{},
		kept: map[plugins.Key]*plugins.Kept{}, held: map[plugins.Key]bool{},
	}
	t.turn <- struct{}{}
	if err := t.Read(ctx); err != nil {
		return nil, err
	}
	if t.others > 0 {
		o.Log.Info("the topic of a plugin's state has keys of other schemas, which are left alone", "topic", o.Name, "cluster", o.Cluster.Alias(), "records", t.others)
	}
	if t.garbage > 0 {
		o.Log.Warn("passed over records that are no plugin's state", "topic", o.Name, "cluster", o.Cluster.Alias(), "records", t.garbage)
	}
	return t, nil
}

// Read reads what has come to the topic since. It is for before the first Take.
func (t *Topic) Read(ctx context.Context) error {
	if err := t.take(ctx); err != nil {
		return err
	}
	defer t.leave()
	exists, err := t.look(ctx)
	if err == nil && exists {
		err = t.read(ctx)
	}
	if err != nil {
		return t.explain("read", err)
	}
	epoch := int64(0)
	for _, s := range t.seen {
		epoch = max(epoch, s.epoch)
	}
	t.run = newStamp(epoch + 1)
	return nil
}

func (t *Topic) read(ctx context.Context) error {
	ends, err := t.o.Cluster.Read(ctx, t.o.Name, t.next, func(r *kgo.Record) {
		t.next[r.Partition] = r.Offset + 1 // where the next try goes on, if this one fails
		e, err := parse(r)
		switch {
		case err != nil:
			t.garbage++
		case e.schema != t.o.Schema:
			t.others++
		default:
			t.load(t.of(e.key), e)
		}
	})
	if err == nil {
		t.next = ends
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.kept {
		k.Loaded()
	}
	return err
}

// load takes in what a record says, unless a later one was there before it.
func (t *Topic) load(kept *plugins.Kept, e entry) {
	if e.stamp.compare(t.seen[e.key]) < 0 {
		kept.Doubt(e.name)
		return
	}
	t.seen[e.key] = e.stamp
	kept.Load(e.topicID, e.name, e.value)
}

// take takes the turn. Its only error is ctx's.
func (t *Topic) take(ctx context.Context) error {
	select {
	case <-t.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Topic) leave() { t.turn <- struct{}{} }

func (t *Topic) explain(what string, err error) error {
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		err = fmt.Errorf("%w: allow Read and Write on it", err)
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		err = fmt.Errorf("%w: alter its max.message.bytes to %s", err, maxMessage)
	}
	return fmt.Errorf("%s state in topic %q on cluster %q: %w", what, t.o.Name, t.o.Cluster.Alias(), t.o.Cluster.Explain(err))
}

// look looks whether the topic exists, and is fit. A cleanup policy that loses state is
// said.
func (t *Topic) look(ctx context.Context) (exists bool, err error) {
	found, err := t.o.Cluster.Topics(ctx, []string{t.o.Name})
	if err != nil {
		return false, err
	}
	topic, ok := found[t.o.Name]
	switch {
	case topic.Err != nil:
		return false, topic.Err
	case !ok:
		return false, nil
	case len(topic.Partitions) < Partitions:
		return false, fmt.Errorf("it has %s and needs %d: add them, or delete it, and the plugin begins without state", plural(len(topic.Partitions)), Partitions)
	}
	if t.id != [16]byte{} && topic.ID != t.id {
		t.lost()
	}
	t.id = topic.ID
	t.checkPolicy(ctx)
	return true, nil
}

func plural(n int) string {
	if n == 1 {
		return "one partition"
	}
	return fmt.Sprintf("%d partitions", n)
}

// checkPolicy warns of any cleanup policy but compact (KAFKA-9216), once. Who may not
// look may write all the same.
func (t *Topic) checkPolicy(ctx context.Context) {
	policy, err := t.o.Cluster.ForgetfulPolicy(ctx, t.o.Name)
	said := t.policy
	if t.policy = policy; err == nil && policy != "" && policy != said {
		t.o.Log.Error("the topic of a plugin's state is not compacted, so state is lost in time: alter its cleanup.policy to compact",
			"topic", t.o.Name, "cluster", t.o.Cluster.Alias(), "policy", policy)
	}
}

// maxMessage is Kafka's default, with room for the largest value, and for as many as the
// client puts into one batch.
const maxMessage = "1048588"

// Configs of the topic: segments so small that little more is read at a start than what
// counts (what is in the last segment of a partition is not compacted), and no bound that
// a cluster with a small message.max.bytes would set.
func configs() map[string]string {
	return map[string]string{"cleanup.policy": "compact", "segment.bytes": "4194304", "max.message.bytes": maxMessage}
}

// prepare makes the topic when it is missing.
func (t *Topic) prepare(ctx context.Context, _ string) error {
	exists, err := t.look(ctx)
	if exists || err != nil {
		return err
	}
	made, err := t.o.Cluster.MakeTopic(ctx, t.o.Name, "a plugin's state", Partitions, t.o.Create, configs(), t.o.Log)
	if !made {
		return err
	}
	if len(t.next) > 0 { // there was another
		t.lost()
	}
	t.id = [16]byte{}
	return nil
}

// lost is when the topic is another one than before: what it had is to be written again.
func (t *Topic) lost() {
	t.next, t.another = map[int32]int64{}, true
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.kept {
		k.DoubtAll()
	}
}

// of is what is kept of a partition.
func (t *Topic) of(k plugins.Key) *plugins.Kept {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.kept[k]
	if kept == nil {
		kept = &plugins.Kept{}
		t.kept[k] = kept
	}
	return kept
}

// Take implements plugins.Store.
func (t *Topic) Take(k plugins.Key) *plugins.Kept {
	kept := t.of(k)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[k] = true
	return kept
}

// Give implements plugins.Store.
func (t *Topic) Give(k plugins.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held, k)
}

// Close ends the connection.
func (t *Topic) Close() { t.writer.Close() }

// holds says whether anything is kept, or may be in the topic.
func holds(k *plugins.Kept) bool {
	for range k.Pairs() {
		return true
	}
	return len(k.Doubted()) > 0
}

// Idle are the source topics of which something is kept and no lane has a partition.
func (t *Topic) Idle() (topics []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	busy := map[string]bool{}
	for k := range t.held {
		busy[k.Topic] = true
	}
	for k, kept := range t.kept {
		if !busy[k.Topic] && !t.held[k] && holds(kept) {
			busy[k.Topic] = true
			topics = append(topics, k.Topic)
		}
	}
	slices.SortFunc(topics, strings.Compare)
	return topics
}
