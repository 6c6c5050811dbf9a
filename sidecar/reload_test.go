package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"mirror/sidecar/config"
	"mirror/sidecar/status"
)

// parse is a load of the text.
func parse(toml string) func() (*config.Config, error) {
	return func() (*config.Config, error) {
		return config.Parse("mirror.toml", []byte(toml), func(string) (string, bool) { return "", false })
	}
}

func TestReload(t *testing.T) {
	var log bytes.Buffer
	level := new(slog.LevelVar)
	cfg, err := parse(embeddedPair)()
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(cfg, "v1", slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level})), level)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if c := m.Status().Config; c.Generation != 1 || c.Last != nil || c.File != "mirror.toml" || c.Loaded.IsZero() || len(c.Reloads) != 2 {
		t.Errorf("at the start: %+v", c)
	}

	bad := strings.Replace(embeddedPair, `refresh = "50ms"`, "refesh = \"1s\"\nlanes = -1", 1)
	changed := strings.Replace(embeddedPair, `refresh = "50ms"`, "refresh = \"60ms\"\nlanes = 2", 1) + "[log]\nlevel = \"error\"\n[admin]\nlisten = \"\"\n"
	live := []string{`log.level: "info" → "error"`, `flows[0].refresh (primary->backup): "50ms" → "60ms"`}
	later := []string{`admin.listen: "127.0.0.1:9464" → ""`, `flows[0].lanes (primary->backup): 0 → 2`}
	for _, step := range []struct {
		text                   string
		applied, later, wrong  []string
		generation             uint64
		level                  slog.Level
		warnings               []string // parts of each
		countApplied, countBad uint64
	}{
		{embeddedPair, nil, nil, nil, 1, slog.LevelInfo, nil, 1, 0},
		{bad, nil, nil, []string{"mirror.toml:9: flows[0].refesh", "mirror.toml:10: flows[0].lanes"}, 1, slog.LevelInfo, []string{"refused", "refused"}, 1, 1},
		{changed, live, later, nil, 2, slog.LevelError, []string{"restart: admin.listen", "restart: flows[0].lanes"}, 2, 1},
		{bad, nil, nil, []string{"flows[0].refesh", "flows[0].lanes"}, 2, slog.LevelError, []string{"refesh", "lanes", "admin.listen", "restart: flows[0].lanes"}, 2, 2},
		{changed, nil, later, nil, 2, slog.LevelError, []string{"admin.listen", "lanes"}, 3, 2},
		{embeddedPair, []string{`log.level: "error" → "info"`, `flows[0].refresh (primary->backup): "60ms" → "50ms"`}, nil, nil, 3, slog.LevelInfo, nil, 4, 2},
	} {
		r := m.Reload(t.Context(), status.TriggerSignal, parse(step.text))
		s := m.Status()
		if !slices.Equal(lines(r.Applied), step.applied) || !slices.Equal(lines(r.NeedsRestart), step.later) || !match(r.Problems, step.wrong) {
			t.Errorf("applied %q, needs a restart %q, problems %q", lines(r.Applied), lines(r.NeedsRestart), r.Problems)
		}
		if r.Generation != step.generation || s.Config.Generation != step.generation || level.Level() != step.level {
			t.Errorf("generation %d, %d, want %d; level %v, want %v", r.Generation, s.Config.Generation, step.generation, level, step.level)
		}
		if (r.Result == status.ReloadRefused) != (len(step.wrong) > 0) || s.Config.Last == nil || s.Config.Last.Result != r.Result || r.Trigger != "signal" {
			t.Errorf("result %+v, last %+v", r, s.Config.Last)
		}
		if !match(s.Warnings, step.warnings) {
			t.Errorf("warnings %q, want %q", s.Warnings, step.warnings)
		}
		if n := s.Config.Reloads; n[status.ReloadApplied] != step.countApplied || n[status.ReloadRefused] != step.countBad {
			t.Errorf("counts %v", n)
		}
	}
	for text, want := range map[string]int{"the config is refused": 2, "config change applied": 2, "config change needs a restart": 0} {
		if n := strings.Count(log.String(), text); n != want { // at level error nothing else is said
			t.Errorf("%q is logged %d times, want %d:\n%s", text, n, want, &log)
		}
	}
}

func lines(cs []config.Change) (all []string) {
	for _, c := range cs {
		all = append(all, c.String())
	}
	return all
}

// match says whether each of got has the words of the same place in want.
func match(got, want []string) bool {
	for i := range min(len(got), len(want)) {
		if !strings.Contains(got[i], want[i]) {
			return false
		}
	}
	return len(got) == len(want)
}

// A refused config leaves the mirror ready.
func TestReadyInSpiteOfABadConfig(t *testing.T) {
	m := open(t, embeddedPair)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- m.Run(ctx) }()
	m.Reload(ctx, status.TriggerFile, func() (*config.Config, error) { return nil, errors.New("no such file") })
	eventually(t, func() string {
		if r := m.Status(); !r.Ready || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "no such file") {
			return fmt.Sprint(r.Ready, r.Reasons, r.Warnings)
		}
		return ""
	})
	stop()
	<-ran
	if r := m.Reload(ctx, status.TriggerFile, parse(embeddedPair)); r.Result != status.ReloadRefused || !match(r.Problems, []string{"the mirror is stopping"}) {
		t.Errorf("after the end: %+v", r)
	}
}

// Several may ask at once, and others look.
func TestReloadsAtOnce(t *testing.T) {
	m := open(t, embeddedPair)
	defer m.Close()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			text := strings.ReplaceAll(embeddedPair, "50ms", fmt.Sprint(100+i, "ms"))
			if r := m.Reload(t.Context(), status.TriggerRequest, parse(text)); r.Result != status.ReloadApplied || len(r.Applied) != 2 {
				t.Errorf("%+v", r)
			}
			m.Status()
			m.Files()
		})
	}
	wg.Wait()
	if g := m.Status().Config.Generation; g != 21 {
		t.Errorf("generation %d, want 21", g)
	}
}

// What flows do with it is what a reload has them do.
func TestReloadReachesTheFlows(t *testing.T) {
	m := open(t, embeddedPair)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- m.Run(ctx) }()
	client := producer(t, m.Bootstrap("primary"))
	for _, topic := range []string{"orders", "payments"} {
		create(t, client, topic)
		send(t, client, topic, "one")
	}
	client.Close()
	topics := func() (all []string) {
		for _, p := range m.Status().Flows[0].Partitions {
			all = append(all, p.Topic)
		}
		return slices.Compact(all)
	}
	for _, want := range [][]string{{"orders", "payments"}, {"orders"}, {"payments"}, {"orders", "payments"}} {
		text := strings.Replace(embeddedPair, `refresh = "50ms"`, fmt.Sprintf("refresh = \"1h\"\ntopics = [%q]", strings.Join(want, "|")), 1)
		if r := m.Reload(ctx, status.TriggerFile, parse(text)); r.Result != status.ReloadApplied {
			t.Fatal(r.Problems)
		}
		eventually(t, func() string {
			if got := topics(); !slices.Equal(got, want) {
				return fmt.Sprintf("%v are copied, want %v", got, want)
			}
			return ""
		})
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}
