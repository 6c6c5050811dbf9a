package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The mirror in three ways: with the plugin offset-sync, which is its default, with
// the plugin switched off, and as a program that never had plugins.
const (
	mirrorName = "mirror"
	offName    = "mirror-off"
	absentName = "mirror-absent"
)

const switchedOff = `[[flows.plugins]]
name = "offset-sync"
enabled = false
`

// mirrorConfig is the mirror's file for a job; plugins is what it says of them.
func mirrorConfig(j job, admin int, plugins string) string {
	return fmt.Sprintf(`[admin]
listen = "127.0.0.1:%d"
[clusters.%s]
bootstrap = [%q]
[clusters.bench]
bootstrap = [%q]
[[flows]]
from = %q
to = "bench"
topics = ['%s', '%s']
`, admin, j.alias, j.from, j.to, j.alias, j.Name, j.light) + plugins
}

func startMirror(j job) (*running, error) { return j.runMirror(j.mirror, "") }

func startOff(j job) (*running, error) { return j.runMirror(j.mirror, switchedOff) }

func startAbsent(j job) (*running, error) { return j.runMirror(j.absent, "") }

func (j job) runMirror(program, plugins string) (*running, error) {
	admin, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(j.dir, "mirror.toml")
	if err := os.WriteFile(file, []byte(mirrorConfig(j, admin[0], plugins)), 0o600); err != nil {
		return nil, err
	}
	p, err := launch(program, "run", "-c", file)
	if err != nil {
		return nil, err
	}
	return j.own(p), nil
}

// syncsTopic is where the plugin writes, on the target.
func (j job) syncsTopic() string { return "mm2-offset-syncs." + j.alias + ".internal" }

// wroteSyncs says that the plugin was at work.
func wroteSyncs(ctx context.Context, j job) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return await(ctx, 100*time.Millisecond, func() error {
		n, err := j.target.ends(ctx, j.syncsTopic(), []int32{0})
		if err == nil && n == 0 {
			err = fmt.Errorf("nothing in %s: the plugin offset-sync was not at work", j.syncsTopic())
		}
		return err
	})
}

// wroteNoSyncs says that it was not.
func wroteNoSyncs(ctx context.Context, j job) error {
	topics, err := j.target.topics(ctx)
	if err == nil && slices.Contains(topics, j.syncsTopic()) {
		err = fmt.Errorf("there is %s: something has written offset syncs", j.syncsTopic())
	}
	return err
}
