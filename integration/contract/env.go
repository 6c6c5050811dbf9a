package contract

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Env is a scenario's test, its clusters and its corner of them.
type Env struct {
	*testing.T
	Pair
	prefix string // of its topics
	ctx    context.Context
}

// Topic is the name that a topic of this scenario has in full.
func (e *Env) Topic(name string) string { return e.prefix + "_" + name }

// Create makes a topic and waits until it is led. configs are names and values
// in turn.
func (e *Env) Create(c *Cluster, topic string, partitions int32, configs ...string) {
	e.Helper()
	set := map[string]*string{}
	for i := 0; i < len(configs); i += 2 {
		set[configs[i]] = &configs[i+1]
	}
	if _, err := c.admin.CreateTopic(e.ctx, partitions, -1, set, topic); err != nil {
		e.Fatalf("create %s: %v", topic, err)
	}
	e.led(c, topic, partitions)
}

// Grow gives a topic more partitions and waits until they are led.
func (e *Env) Grow(c *Cluster, topic string, partitions int32) {
	e.Helper()
	rs, err := c.admin.UpdatePartitions(e.ctx, int(partitions), topic)
	if err = errors.Join(err, rs.Error()); err != nil {
		e.Fatalf("grow %s: %v", topic, err)
	}
	e.led(c, topic, partitions)
}

// led waits until the partitions have leaders.
func (e *Env) led(c *Cluster, topic string, partitions int32) {
	e.Helper()
	e.Eventually("leaders of "+topic, func() string {
		d := e.Describe(c, topic)
		for _, p := range d.Partitions {
			if p.Leader < 0 || p.Err != nil {
				return fmt.Sprintf("partition %d: %v", p.Partition, p.Err)
			}
		}
		if len(d.Partitions) != int(partitions) {
			return fmt.Sprintf("%d partitions, want %d: %v", len(d.Partitions), partitions, d.Err)
		}
		return ""
	})
}

// Delete deletes topics and waits until they are gone.
func (e *Env) Delete(c *Cluster, topic string) {
	e.Helper()
	if r, err := c.admin.DeleteTopic(e.ctx, topic); err != nil || r.Err != nil {
		e.Fatalf("delete %s: %v", topic, errors.Join(err, r.Err))
	}
	// It would ask for it again and again.
	c.client.PurgeTopicsFromClient(topic)
	e.Eventually("the end of "+topic, func() string {
		if e.Exists(c, topic) {
			return "is still there"
		}
		return ""
	})
}

// InSync waits until every replica of every partition of the cluster is in sync.
func (e *Env) InSync(c *Cluster) {
	e.Helper()
	e.Eventually("all replicas to be in sync", func() string {
		m, err := c.admin.Metadata(e.ctx)
		if err != nil {
			return err.Error()
		}
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				if p.Err != nil || len(p.ISR) < len(p.Replicas) {
					return fmt.Sprintf("%s/%d: %v of %v, %v", t.Topic, p.Partition, p.ISR, p.Replicas, p.Err)
				}
			}
		}
		return ""
	})
}

// Describe asks the cluster for a topic; its Err says when there is none.
func (e *Env) Describe(c *Cluster, topic string) kadm.TopicDetail {
	e.Helper()
	m, err := c.admin.Metadata(e.ctx, topic)
	if err != nil {
		e.Fatalf("metadata of %s: %v", topic, err)
	}
	return m.Topics[topic]
}

// Exists says whether the cluster has the topic.
func (e *Env) Exists(c *Cluster, topic string) bool {
	e.Helper()
	switch err := e.Describe(c, topic).Err; {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return false
	case err != nil && !errors.Is(err, kerr.LeaderNotAvailable):
		e.Fatalf("topic %s: %v", topic, err)
	}
	return true
}

// Topics lists the topics of the scenario on a cluster, whatever stands before
// their names.
func (e *Env) Topics(c *Cluster) []string {
	e.Helper()
	all, err := c.admin.ListTopics(e.ctx)
	if err != nil {
		e.Fatalf("list topics: %v", err)
	}
	var mine []string
	for _, name := range all.Names() {
		if strings.Contains(name, e.prefix+"_") {
			mine = append(mine, name)
		}
	}
	return mine
}

// configs asks for all configs of a topic.
func (e *Env) configs(c *Cluster, topic string) []kadm.Config {
	e.Helper()
	rs, err := c.admin.DescribeTopicConfigs(e.ctx, topic)
	if err != nil {
		e.Fatalf("configs of %s: %v", topic, err)
	}
	r, err := rs.On(topic, nil)
	if err = errors.Join(err, r.Err); err != nil {
		e.Fatalf("configs of %s: %v", topic, err)
	}
	return r.Configs
}

// Config is a topic's config, "" where it has none of that name.
func (e *Env) Config(c *Cluster, topic, name string) string {
	e.Helper()
	for _, k := range e.configs(c, topic) {
		if k.Key == name {
			return k.MaybeValue()
		}
	}
	return ""
}

// OwnConfigs are the configs that were set on the topic itself.
func (e *Env) OwnConfigs(c *Cluster, topic string) map[string]string {
	e.Helper()
	own := map[string]string{}
	for _, k := range e.configs(c, topic) {
		if k.Source == kmsg.ConfigSourceDynamicTopicConfig {
			own[k.Key] = k.MaybeValue()
		}
	}
	return own
}

// SetConfig changes a topic's config.
func (e *Env) SetConfig(c *Cluster, topic, name, value string) {
	e.Helper()
	rs, err := c.admin.AlterTopicConfigs(e.ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic)
	for _, r := range rs {
		err = errors.Join(err, r.Err)
	}
	if err != nil {
		e.Fatalf("set %s of %s: %v", name, topic, err)
	}
}

// Put produces the records, in order and acknowledged, to the partitions that
// they name.
func (e *Env) Put(c *Cluster, topic string, records ...*kgo.Record) {
	e.Helper()
	e.PutWith(c.client, topic, records...)
}

// PutWith is Put with a client of the scenario's own.
func (e *Env) PutWith(client *kgo.Client, topic string, records ...*kgo.Record) {
	e.Helper()
	for _, r := range records {
		r.Topic = topic
	}
	if err := client.ProduceSync(e.ctx, records...).FirstErr(); err != nil {
		e.Fatalf("produce to %s: %v", topic, err)
	}
}

// Values makes records without keys, for one partition.
func Values(partition int32, values ...string) []*kgo.Record {
	var rs []*kgo.Record
	for _, v := range values {
		rs = append(rs, &kgo.Record{Partition: partition, Value: []byte(v)})
	}
	return rs
}

// Numbered makes n records "PREFIX-0", "PREFIX-1", … for one partition, with
// keys of their own.
func Numbered(partition int32, prefix string, n int) []*kgo.Record {
	var rs []*kgo.Record
	for i := range n {
		v := fmt.Sprintf("%s-%d", prefix, i)
		rs = append(rs, &kgo.Record{Partition: partition, Key: []byte("key of " + v), Value: []byte(v)})
	}
	return rs
}

// Trim deletes the records of a partition before an offset.
func (e *Env) Trim(c *Cluster, topic string, partition int32, before int64) {
	e.Helper()
	o := kadm.Offsets{}
	o.Add(kadm.Offset{Topic: topic, Partition: partition, At: before})
	r, err := c.admin.DeleteRecords(e.ctx, o)
	if err = errors.Join(err, r.Error()); err != nil {
		e.Fatalf("delete records of %s: %v", topic, err)
	}
}

// Eventually waits until missing returns ""; until then it says what is missing.
func (e *Env) Eventually(what string, missing func() string) {
	e.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	left, told := "", false
	defer func() {
		if left != "" && !told { // the time was over while it looked, which said that instead
			e.Logf("waiting for %s: %s", what, left)
		}
	}()
	for {
		if left = missing(); left == "" {
			return
		}
		if e.ctx.Err() != nil {
			told = true
			e.Fatalf("waiting for %s: %s", what, left)
		}
		select {
		case <-e.ctx.Done(): // one more look
		case <-tick.C:
		}
	}
}
