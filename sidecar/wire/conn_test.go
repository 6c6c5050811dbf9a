package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestAnswersComeInOrderAndPointIntoTheirFrames(t *testing.T) {
	const n = 20
	pool := NewPool(1 << 20)
	c := mustDial(t, Options{Frames: pool}, func(s *side) {
		var rs []request
		for range n {
			rs = append(rs, s.next())
		}
		for i, r := range rs {
			if r.clientID != "test" {
				t.Errorf("client id %q", r.clientID)
			}
			s.answer(r, fetchAnswer(fmt.Appendf(nil, "records %d", i)))
		}
		s.tryNext()
	})
	type got struct {
		records []byte
		frame   *Frame
	}
	answers := make(chan got, n)
	for range n {
		c.Send(fetchRequest(0), func(resp kmsg.Response, frame *Frame, err error) {
			if err != nil {
				t.Error(err)
				close(answers)
				return
			}
			answers <- got{resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches, frame}
		})
	}
	for i := range n {
		g, ok := <-answers
		if !ok {
			return
		}
		if want := fmt.Sprintf("records %d", i); string(g.records) != want {
			t.Errorf("answer %d holds %q, want %q", i, g.records, want)
		}
		clear(g.frame.Bytes())
		if string(g.records) != strings.Repeat("\x00", len(g.records)) {
			t.Errorf("the records of answer %d are a copy", i)
		}
		g.frame.Release()
	}
	if pool.InUse() != 0 {
		t.Errorf("%d bytes in use after all frames were released", pool.InUse())
	}
}

func TestTimeLimits(t *testing.T) {
	const limit, wait = 10 * time.Second, 3 * time.Second
	tests := []struct {
		name   string
		broker func(s *side)
		sends  int
		after  time.Duration // when the connection fails; 0: never
	}{
		{"silence", func(s *side) { s.next() }, 1, limit + wait},
		{"in time", func(s *side) { r := s.next(); time.Sleep(limit + wait - 1); s.answer(r, nil) }, 1, 0},
		// One request is worked on at a time: the second one's time starts with the first one's
		// answer.
		{"one after the other", func(s *side) {
			a, b := s.next(), s.next()
			time.Sleep(limit)
			s.answer(a, nil)
			time.Sleep(limit)
			s.answer(b, nil)
		}, 2, 0},
		{"silence after the first", func(s *side) {
			a := s.next()
			s.next()
			time.Sleep(limit)
			s.answer(a, nil)
		}, 2, limit + limit + wait},
		// A throttle adds to the time of what is pending.
		{"throttled", func(s *side) {
			a, b := s.next(), s.next()
			s.answer(a, throttle(time.Minute))
			time.Sleep(time.Minute + limit)
			s.answer(b, nil)
		}, 2, 0},
		{"silence after a throttle", func(s *side) {
			a := s.next()
			s.next()
			s.answer(a, throttle(time.Minute))
		}, 2, time.Minute + limit + wait},
		// A slow answer is no silence.
		{"drop by drop", func(s *side) {
			b := encodeAnswer(s.next().corr, fetchRequest(0).ResponseKind())
			for i := range b {
				time.Sleep(limit - 1)
				s.write(b[i : i+1])
			}
		}, 1, 0},
		{"stuck in the middle", func(s *side) {
			r := s.next()
			time.Sleep(time.Second)
			s.write(encodeAnswer(r.corr, r.ResponseKind())[:7])
		}, 1, time.Second + limit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				c := mustDial(t, Options{Timeout: limit}, func(s *side) {
					tt.broker(s)
					s.tryNext() // stay until the client leaves
				})
				errs := make(chan error, tt.sends)
				for range tt.sends {
					c.Send(fetchRequest(wait), func(_ kmsg.Response, f *Frame, err error) {
						if f != nil {
							f.Release()
						}
						errs <- err
					})
				}
				var last error
				for range tt.sends {
					last = <-errs
				}
				switch {
				case tt.after == 0 && last != nil:
					t.Errorf("failed after %s: %v", time.Since(began), last)
				case tt.after != 0 && !errors.Is(last, os.ErrDeadlineExceeded):
					t.Errorf("got error %v, want a timeout", last)
				case tt.after != 0 && time.Since(began) != tt.after:
					t.Errorf("failed after %s, want %s", time.Since(began), tt.after)
				}
			})
		})
	}
}

func TestSendWaitsForTheThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustDial(t, Options{}, func(s *side) {
			s.answer(s.next(), throttle(7*time.Second))
			s.answer(s.next(), nil)
			s.tryNext()
		})
		began := time.Now()
		for _, want := range []time.Duration{0, 7 * time.Second} {
			_, frame, err := c.Request(t.Context(), fetchRequest(0))
			if err != nil {
				t.Fatal(err)
			}
			frame.Release()
			if took := time.Since(began); took != want {
				t.Errorf("answered after %s, want %s", took, want)
			}
		}
	})
}

func TestCloseFailsWhatIsPendingAndWakesSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustDial(t, Options{}, func(s *side) {
			r := s.next()
			s.next()
			s.answer(r, throttle(time.Hour))
			s.tryNext()
		})
		errs := make(chan error, 4)
		done := func(_ kmsg.Response, f *Frame, err error) {
			if f != nil {
				f.Release()
			}
			errs <- err
		}
		c.Send(fetchRequest(0), done)
		c.Send(fetchRequest(0), done)
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
		go c.Send(fetchRequest(0), done) // waits for the throttle
		synctest.Wait()
		c.Close()
		c.Send(fetchRequest(0), done)
		for range 3 {
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Errorf("got %v, want %v", err, ErrClosed)
			}
		}
		if err := c.Err(); !errors.Is(err, ErrClosed) {
			t.Errorf("Err is %v", err)
		}
		<-c.Done()
	})
}

func TestRequestLeavesWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(1 << 20)
		c := mustDial(t, Options{Frames: pool}, func(s *side) {
			r := s.next()
			time.Sleep(5 * time.Second)
			s.answer(r, nil)
			s.answer(s.next(), nil)
			s.tryNext()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := c.Request(ctx, fetchRequest(0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		_, frame, err := c.Request(t.Context(), fetchRequest(0))
		if err != nil {
			t.Fatal(err)
		}
		frame.Release()
		if pool.InUse() != 0 {
			t.Errorf("the answer that nobody waited for still holds %d bytes", pool.InUse())
		}
	})
}

func TestEnds(t *testing.T) {
	type test struct {
		name    string
		broker  func(s *side)
		sends   int
		want    string
		wantErr error
	}
	tests := []test{
		{"idle close", func(s *side) {}, 0, "idle connection closed by the broker", ErrIdle},
		{"close with requests pending", func(s *side) { r := s.next(); s.next(); s.answer(r, nil); s.next() }, 3, "closed the connection with 2 requests unanswered", io.EOF},
		{"close at the first request", func(s *side) { s.next() }, 1, "does the listener expect authentication?", io.EOF},
		{"close within an answer", func(s *side) { s.write(encodeAnswer(s.next().corr, fetchRequest(0).ResponseKind())[:9]) }, 1, "closed the connection with 1 requests unanswered", io.ErrUnexpectedEOF},
		{"negative size", func(s *side) { s.next(); s.write([]byte{0xff, 0, 0, 0}) }, 1, "announces an answer of -16777216 bytes", nil},
		{"size above the limit", func(s *side) { s.next(); s.write([]byte{0, 0x10, 0, 1}) }, 1, "announces an answer of 1048577 bytes, allowed are 4 to 1048576", nil},
		{"size below the header", func(s *side) { s.next(); s.write([]byte{0, 0, 0, 3}) }, 1, "announces an answer of 3 bytes", nil},
		{"tls", func(s *side) { s.next(); s.write([]byte{0x15, 3, 3, 0, 2, 2, 80}) }, 1, "answers in TLS: enable tls", nil},
		{"http", func(s *side) { s.next(); s.write([]byte("HTTP/1.1 400 Bad Request\r\n")) }, 1, "is an HTTP server", nil},
		{"wrong correlation id", func(s *side) { s.next(); s.write([]byte{0, 0, 0, 4, 0, 0, 0, 77}) }, 1, "answered request 77 while request 2 was due", nil},
		{"truncated answer", func(s *side) {
			b := encodeAnswer(s.next().corr, fetchRequest(0).ResponseKind())
			b[3] -= 2
			s.write(b[:len(b)-2])
		}, 1, "answer of broker broker:9092 to Fetch version 12", nil},
		{"unasked answer", func(s *side) { s.write([]byte{0, 0, 0, 4, 0, 0, 0, 1}) }, 0, "sent 4 bytes that no request asked for", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pool := NewPool(1 << 20)
			c := mustDial(t, Options{Frames: pool, MaxResponse: 1 << 20}, func(s *side) {
				tt.broker(s)
				// The client may still be writing, or see what was written only after it has read it.
				if tt.wantErr == nil {
					s.tryNext()
				}
			})
			errs := make(chan error, tt.sends)
			for range tt.sends {
				c.Send(fetchRequest(0), func(_ kmsg.Response, f *Frame, err error) {
					if f != nil {
						f.Release()
					}
					errs <- err
				})
			}
			<-c.Done()
			err := c.Err()
			for range tt.sends {
				if e := <-errs; e != nil && e != err {
					t.Errorf("a request failed by %v, the connection by %v", e, err)
				}
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ended by %q, want %q", err, tt.want)
			}
			if tt.wantErr != nil && !errors.Is(err, tt.wantErr) {
				t.Errorf("%q does not wrap %q", err, tt.wantErr)
			}
			if pool.InUse() != 0 {
				t.Errorf("%d bytes in use", pool.InUse())
			}
		})
	}
}

func TestSendRefuses(t *testing.T) {
	noAcks := kmsg.NewPtrProduceRequest()
	noAcks.Version, noAcks.Acks = 9, 0
	tooNew := fetchRequest(0)
	tooNew.Version = 18
	tooOld := fetchRequest(0)
	tooOld.Version = 3
	unknown := kmsg.NewPtrJoinGroupRequest()
	tests := []struct {
		req  kmsg.Request
		want string
	}{
		{noAcks, "acks 0"},
		{tooNew, "Fetch version 18: broker broker:9092 speaks versions 4 to 17"},
		{tooOld, "Fetch version 3: broker broker:9092 speaks versions 4 to 17"},
		{unknown, "JoinGroup version 0: broker broker:9092 does not speak it"},
	}
	c := mustDial(t, Options{}, func(s *side) {
		if r, err := s.tryNext(); err == nil {
			t.Errorf("the broker got %+v", r.Request)
		}
	})
	for _, tt := range tests {
		if _, _, err := c.Request(t.Context(), tt.req); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
	if err := c.Err(); err != nil {
		t.Errorf("the connection ended: %v", err)
	}
}

// heldConn is a connection whose write, once it is told to, outlasts even Close.
type heldConn struct {
	net.Conn
	hold atomic.Pointer[chan struct{}]
}

func (c *heldConn) Write(b []byte) (int, error) {
	if hold := c.hold.Load(); hold != nil {
		<-*hold
	}
	return c.Conn.Write(b)
}

// TestDoneWaitsForTheWrite makes sure that nobody is told to give back the bytes that are still
// being written.
func TestDoneWaitsForTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := play(t, Options{}, func(s *side) {
			s.versions()
			s.tryNext()
		})
		var held *heldConn
		pipe := o.Dial
		o.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			nc, err := pipe(ctx, addr)
			held = &heldConn{Conn: nc}
			return held, err
		}
		c, err := Dial(t.Context(), "broker:9092", o)
		if err != nil {
			t.Fatal(err)
		}
		hold := make(chan struct{})
		held.hold.Store(&hold)
		errs := make(chan error, 1)
		go c.Send(produceOf(testBatch(4096)), func(_ kmsg.Response, _ *Frame, err error) { errs <- err })
		synctest.Wait()
		go c.Close()
		synctest.Wait()
		select {
		case err := <-errs:
			t.Errorf("done was called while the request was being written: %v", err)
		default:
		}
		close(hold)
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want %v", err, ErrClosed)
		}
		<-c.Done()
	})
}
