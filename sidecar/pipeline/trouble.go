package pipeline

import (
	"strings"
	"sync"
	"time"
	"unicode"
)

// trouble is a cluster that cannot be reached, or a broker of it.
type trouble struct {
	mu    sync.Mutex
	since time.Time // zero: none
	err   error
	said  map[string]time.Time // lines, without their numbers
}

const (
	// troubleShows is how long it lasts before the flow counts as stalled. A
	// broker that restarts takes less.
	troubleShows = 10 * time.Second
	// troubleSays is how often the same line may be logged: one broker of three
	// that is gone comes and goes as trouble while the others answer, in several
	// words (refused, reset, closed) and from another port each time.
	troubleSays = 5 * time.Minute
	// troubleLines is how many lines are remembered.
	troubleLines = 64
)

// begin keeps err and says whether it is worth a line.
func (t *trouble) begin(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.since.IsZero() {
		t.since = now
	}
	t.err = err
	line := withoutNumbers(err.Error())
	if at, ok := t.said[line]; ok && now.Sub(at) < troubleSays {
		return false
	}
	if t.said == nil || len(t.said) >= troubleLines {
		t.said = map[string]time.Time{}
	}
	t.said[line] = now
	return true
}

func withoutNumbers(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, s)
}

// end says that the cluster answers.
func (t *trouble) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since, t.err = time.Time{}, nil
}

// lasting is the error, once it has lasted.
func (t *trouble) lasting() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() || time.Since(t.since) < troubleShows {
		return nil
	}
	return t.err
}

// trouble counts, and logs what is new.
func (f *Flow) trouble(t *trouble, kind string, err error) {
	f.count(kind)
	if t.begin(err) {
		f.log.Warn("trouble with a connection, trying again", "kind", kind, "err", err)
	}
}
