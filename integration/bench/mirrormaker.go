package main

import (
	"fmt"
	"maps"
	"os"
)

// startMirrorMaker runs MirrorMaker 2 in dedicated mode, with its own defaults
// but for what a cluster of one broker needs, and more properties.
func startMirrorMaker(j job, more map[string]string) (*running, error) {
	properties := map[string]string{
		"clusters":                              j.alias + ",bench",
		j.alias + ".bootstrap.servers":          j.from,
		"bench.bootstrap.servers":               j.to,
		j.alias + "->bench.enabled":             "true",
		j.alias + "->bench.topics":              j.Name + "," + j.light,
		"replication.factor":                    "1",
		"checkpoints.topic.replication.factor":  "1",
		"heartbeats.topic.replication.factor":   "1",
		"offset-syncs.topic.replication.factor": "1",
		"offset.storage.replication.factor":     "1",
		"status.storage.replication.factor":     "1",
		"config.storage.replication.factor":     "1",
	}
	maps.Copy(properties, more)
	c, err := runContainer(j.image, fmt.Sprintf("mirror-bench-%d-%s", os.Getpid(), j.alias), "-Xms256m -Xmx2g",
		`exec /opt/kafka/bin/connect-mirror-maker.sh "$PROPERTIES"`, properties)
	if err != nil {
		if c != nil {
			c.remove()
		}
		return nil, err
	}
	return &running{pid: c.pid, stop: c.remove, log: c.log, done: j.arrived, total: j.Records, payload: j.Payload}, nil
}

func startTuned(j job) (*running, error) {
	return startMirrorMaker(j, map[string]string{
		"bench.producer.batch.size":            "262144",
		"bench.producer.linger.ms":             "20",
		"bench.producer.compression.type":      j.Codec,
		j.alias + ".consumer.max.poll.records": "2000",
	})
}
