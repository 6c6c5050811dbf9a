package plugins

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"

	"mirror/abi"
)

// lines lets through so many lines a second of all instances of a plugin, and says
// how many it did not.
type lines struct {
	log *slog.Logger

	mu      sync.Mutex
	second  int64
	said    int
	dropped uint64 // in this second
	lost    uint64 // in all
}

var levels = [...]slog.Level{abi.LogDebug: slog.LevelDebug, abi.LogInfo: slog.LevelInfo, abi.LogWarn: slog.LevelWarn, abi.LogError: slog.LevelError}

// write logs a line of a guest, if there is room for it. Level is one of abi's.
func (l *lines) write(lane int, level int, text string) {
	ok, dropped := l.admit(time.Now().Unix())
	if dropped > 0 {
		l.log.Warn("the plugin says too much, lines were left out", "lines", dropped)
	}
	if ok {
		l.log.Log(context.Background(), levels[level], printable(text), "lane", lane, "from", "guest")
	}
}

func (l *lines) admit(second int64) (ok bool, dropped uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second != l.second {
		dropped, l.dropped = l.dropped, 0
		l.second, l.said = second, 0
	}
	if l.said >= linesASecond {
		l.dropped++
		l.lost++
		return false, dropped
	}
	l.said++
	return true, dropped
}

// Lost is how many lines were left out.
func (l *lines) Lost() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// printable is what a guest said without what could pass for something else in a log.
func printable(s string) string {
	if len(s) > abi.MaxText {
		s = s[:abi.MaxText]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}

// console is a guest's standard output or error: what it writes is cut into lines.
type console struct {
	i     *instance
	level int
	line  []byte
}

// Write takes all of b. It looks at the clock, for a guest can pass any number of
// buffers in one call.
func (c *console) Write(b []byte) (int, error) {
	c.i.look()
	for _, x := range b {
		if x == '\n' {
			c.i.p.lines.write(c.i.lane, c.level, string(c.line))
			c.line = c.line[:0]
		} else if len(c.line) < abi.MaxText {
			c.line = append(c.line, x)
		}
	}
	return len(b), nil
}
