package main

import (
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

const fakeImage = "kfake, in the process of the bench"

// startFake starts a broker in this process, which keeps everything in memory. Its
// CPU time cannot be told from that of the other one.
func startFake() (*broker, error) {
	b := &broker{pid: os.Getpid()}
	var err error
	if b.fake, err = kfake.NewCluster(kfake.NumBrokers(1)); err != nil {
		return b, fmt.Errorf("start a broker in the process: %w", err)
	}
	b.near = b.fake.ListenAddrs()[0]
	b.client, err = kgo.NewClient(kgo.SeedBrokers(b.near))
	return b, err
}
