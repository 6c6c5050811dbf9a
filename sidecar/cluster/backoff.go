package cluster

import "time"

// Backoff is the pause before the n-th try in a row to reach a broker or to have
// it do something: 50 ms, doubled up to 5 s.
func Backoff(n int) time.Duration {
	return min(50*time.Millisecond<<min(n-1, 10), 5*time.Second)
}
