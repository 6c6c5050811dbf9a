// Package watch is for tests: it waits for conditions, and keeps what is logged. It
// knows nothing of the mirror, so that the tests of any package can use it.
package watch

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Until waits until check returns "". After half a minute the test fails with what
// check says.
func Until(t testing.TB, what string, check func() string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for {
		text := check()
		if text == "" {
			return
		}
		select {
		case <-end:
			t.Fatalf("waited in vain for %s: %s", what, text)
		case <-tick.C:
		}
	}
}

// Log keeps what is written to it. Several goroutines may use it.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// String is all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Count is the number of lines with the text.
func (l *Log) Count(text string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
