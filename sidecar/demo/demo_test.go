package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"mirror/sidecar/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs the demo with a fake mirror and gives what it wrote.
func run(ctx context.Context, spoil func(rs []*kgo.Record) []*kgo.Record, change func(*Options)) (string, error) {
	var out bytes.Buffer
	o := Options{Open: openFake(spoil), For: time.Second, Rate: 2000, CatchUp: 20 * time.Second, Out: &out, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	err := Run(ctx, o)
	return out.String(), err
}

func TestAllArrive(t *testing.T) {
	out, err := run(t.Context(), nil, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !regexp.MustCompile(`(?m)^All [0-9,]+ records arrived as they were written: `).MatchString(out) {
		t.Error(out)
	}
	if !strings.Contains(out, ": 0 lost, 0 repeated.\n") {
		t.Errorf("the group did not go on as it should:\n%s", out)
	}
	for _, topic := range topics {
		row := regexp.MustCompile(`(?m)^` + topic.name + ` +[1-9][0-9,]* +[1-9][0-9,]* +[1-9][0-9,]*(?: keys)? +0 .*`).FindString(out)
		if !strings.HasSuffix(row, topic.what) {
			t.Errorf("no sound row for %s in\n%s", topic.name, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("escape codes where there is no terminal:\n%q", out)
	}
}

// once applies a change to the first fetch of a topic with enough records.
func once(topic string, change func(rs []*kgo.Record) []*kgo.Record) func(rs []*kgo.Record) []*kgo.Record {
	done := false
	return func(rs []*kgo.Record) []*kgo.Record {
		if done || rs[0].Topic != from+"."+topic || len(rs) < 4 {
			return rs
		}
		done = true
		return change(rs)
	}
}

func TestEveryFaultIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(rs []*kgo.Record) []*kgo.Record
		want  string
	}{
		"lost":      {once("orders", func(rs []*kgo.Record) []*kgo.Record { return append(rs[:1:1], rs[2:]...) }), "  missing, source offset"},
		"repeated":  {once("clicks", func(rs []*kgo.Record) []*kgo.Record { return append(rs[:2:2], rs[1:]...) }), "  repeated, target offset"},
		"reordered": {once("orders", func(rs []*kgo.Record) []*kgo.Record { rs[1], rs[2] = rs[2], rs[1]; return rs }), "  reordered, source offset"},
		"changed": {once("payments", func(rs []*kgo.Record) []*kgo.Record {
			rs[1].Timestamp = rs[1].Timestamp.Add(time.Millisecond)
			return rs
		}), "  changed, source offset"},
		"empty for null": {func() func(rs []*kgo.Record) []*kgo.Record {
			done := false
			return func(rs []*kgo.Record) []*kgo.Record {
				for _, r := range rs {
					if !done && strings.HasSuffix(r.Topic, "oddities") && r.Key != nil && r.Value == nil {
						r.Value, done = []byte{}, true
					}
				}
				return rs
			}
		}(), `value null became ""`},
		"wrong customer": {func(rs []*kgo.Record) []*kgo.Record {
			if strings.HasSuffix(rs[0].Topic, "customers") {
				for _, r := range rs {
					r.Value = []byte("{}")
				}
			}
			return rs
		}, "last record of key"},
		"nothing copied": {func(rs []*kgo.Record) []*kgo.Record { return nil }, "The mirror was given 500ms to catch up."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t.Context(), c.spoil, func(o *Options) { o.For, o.CatchUp = time.Second, 500*time.Millisecond })
			if !errors.Is(err, ErrDifferent) {
				t.Errorf("error %v", err)
			}
			if !strings.Contains(out, c.want) || strings.Contains(out, "arrived as they were written") {
				t.Errorf("no %q in\n%s", c.want, out)
			}
		})
	}
}

// A group that goes on at the wrong record is found, though all records arrived.
func TestGroupAtTheWrongRecordIsFound(t *testing.T) {
	for shift, want := range map[int64]string{1: ` [1-9] lost, 0 repeated\.\n`, -1: ` 0 lost, [1-9] repeated\.\n`} {
		t.Run(fmt.Sprint(shift), func(t *testing.T) {
			t.Parallel()
			out, err := run(t.Context(), nil, func(o *Options) {
				o.CatchUp = 3 * time.Second
				open := o.Open
				o.Open = func(cfg *config.Config, log *slog.Logger) (Mirror, error) {
					m, err := open(cfg, log)
					m.(*fakeMirror).shift = shift
					return m, err
				}
			})
			if !errors.Is(err, ErrDifferent) {
				t.Errorf("error %v", err)
			}
			if !regexp.MustCompile("Consumer group billing .*"+want).MatchString(out) || !strings.Contains(out, "arrived as they were written") {
				t.Errorf("no %q in\n%s", want, out)
			}
		})
	}
}

// Ctrl-C ends an endless demo with the same summary.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, err := run(ctx, nil, func(o *Options) {
		o.For = 0
		o.Out = listener{o.Out, func(text string) {
			if strings.HasPrefix(text, "2s: ") {
				cancel()
			}
		}}
	})
	if err != nil || !strings.Contains(out, "\nAll ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// listener tells each write to on.
type listener struct {
	out io.Writer
	on  func(text string)
}

func (l listener) Write(b []byte) (int, error) {
	l.on(string(b))
	return l.out.Write(b)
}

func TestMirrorThatEndsIsAnError(t *testing.T) {
	broken := errors.New("cannot go on")
	out, err := run(t.Context(), nil, func(o *Options) {
		open := o.Open
		o.Open = func(cfg *config.Config, log *slog.Logger) (Mirror, error) {
			m, err := open(cfg, log)
			return endingMirror{m, broken}, err
		}
	})
	if !errors.Is(err, broken) || !errors.Is(err, errMirrorEnded) {
		t.Errorf("%v\n%s", err, out)
	}
}

// endingMirror ends with an error soon after it is started.
type endingMirror struct {
	Mirror
	err error
}

func (m endingMirror) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	return errors.Join(m.Mirror.Run(ctx), m.err)
}

func TestMirrorThatCannotBeOpened(t *testing.T) {
	broken := errors.New("no port is free")
	_, err := run(t.Context(), nil, func(o *Options) {
		o.Open = func(*config.Config, *slog.Logger) (Mirror, error) { return nil, broken }
	})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}
