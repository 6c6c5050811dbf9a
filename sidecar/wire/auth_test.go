package wire

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
)

// oldVersions is how a broker answers an ApiVersions request that is too new for it, always in
// version 0.
func oldVersions(s *side, r request, keys []kmsg.ApiVersionsResponseApiKey) {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode, resp.ApiKeys = kerr.UnsupportedVersion.Code, keys
	s.write(encodeAnswer(r.corr, resp))
}

func TestVersions(t *testing.T) {
	tests := []struct {
		name   string
		broker func(s *side)
		asked  []int16 // the versions that the client asks with
		fetch  int16   // the highest version of Fetch, by the answer
	}{
		{"first answer", func(s *side) { s.versions() }, []int16{5}, 17},
		{"the broker names its version", func(s *side) {
			oldVersions(s, s.next(), []kmsg.ApiVersionsResponseApiKey{{ApiKey: 18, MinVersion: 0, MaxVersion: 3}})
			s.versions()
		}, []int16{5, 3}, 17},
		{"the broker names none", func(s *side) { oldVersions(s, s.next(), nil); s.versions() }, []int16{5, 0}, 17},
		{"the broker names what it has just refused", func(s *side) {
			oldVersions(s, s.next(), []kmsg.ApiVersionsResponseApiKey{{ApiKey: 18, MinVersion: 0, MaxVersion: 5}})
			s.versions()
		}, []int16{5, 0}, 17},
		{"newer than kmsg", func(s *side) {
			s.answer(s.next(), func(resp kmsg.Response) {
				resp.(*kmsg.ApiVersionsResponse).ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: 1, MinVersion: 4, MaxVersion: 99}}
			})
		}, []int16{5}, 18},
		{"all newer than kmsg", func(s *side) {
			s.answer(s.next(), func(resp kmsg.Response) {
				resp.(*kmsg.ApiVersionsResponse).ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: 1, MinVersion: 98, MaxVersion: 99}, {ApiKey: 12345}}
			})
		}, []int16{5}, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var asked []int16
			c, err := Dial(t.Context(), "broker:9092", play(t, Options{}, func(s *side) {
				spy := &side{s.t, &spyConn{Conn: s.nc, asked: &asked}}
				tt.broker(spy)
				s.tryNext()
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := c.MaxVersion(1); got != tt.fetch {
				t.Errorf("MaxVersion of Fetch is %d, want %d", got, tt.fetch)
			}
			for _, key := range []int16{-1, 99, 128, 32767} {
				if got := c.MaxVersion(key); got != -1 {
					t.Errorf("MaxVersion of key %d is %d, want -1", key, got)
				}
			}
			if len(asked) != len(tt.asked) {
				t.Fatalf("asked with versions %v, want %v", asked, tt.asked)
			}
			for i := range asked {
				if asked[i] != tt.asked[i] {
					t.Errorf("asked with versions %v, want %v", asked, tt.asked)
				}
			}
		})
	}
}

func TestDialFails(t *testing.T) {
	refuse := func(set func(resp kmsg.Response)) func(s *side) {
		return func(s *side) { s.versions(); s.answer(s.next(), set) }
	}
	failing := Options{SASL: func(context.Context) (sasl.Mechanism, error) { return nil, errors.New("no such file") }}
	tests := []struct {
		name   string
		o      Options
		broker func(s *side)
		want   []string
		is     error
	}{
		{"closed at once", Options{}, func(s *side) { s.next() }, []string{"broker:9092", "does the listener expect TLS?"}, nil},
		{"unsupported for good", Options{}, func(s *side) {
			oldVersions(s, s.next(), nil)
			oldVersions(s, s.next(), nil)
		}, []string{"broker:9092"}, kerr.UnsupportedVersion},
		{"an error", Options{}, func(s *side) {
			s.answer(s.next(), func(resp kmsg.Response) {
				resp.(*kmsg.ApiVersionsResponse).ErrorCode = kerr.ClusterAuthorizationFailed.Code
			})
		}, []string{"broker:9092"}, kerr.ClusterAuthorizationFailed},
		{"no requests", Options{}, func(s *side) { s.answer(s.next(), nil) }, []string{"lists no requests"}, nil},
		{"garbage", Options{}, func(s *side) {
			s.next()
			s.write([]byte{0, 0, 0, 5, 0, 0, 0, 1, 0})
		}, []string{"answer of 5 bytes"}, nil},
		{"no secret", failing, func(s *side) { s.versions() }, []string{"authenticate at broker broker:9092", "no such file"}, nil},
		{"wrong mechanism", withPlain(), refuse(func(resp kmsg.Response) {
			r := resp.(*kmsg.SASLHandshakeResponse)
			r.ErrorCode, r.SupportedMechanisms = kerr.UnsupportedSaslMechanism.Code, []string{"GSSAPI", "SCRAM-SHA-512"}
		}), []string{"broker:9092 by PLAIN", "only offers GSSAPI, SCRAM-SHA-512"}, kerr.UnsupportedSaslMechanism},
		{"no SASL listener", withPlain(), refuse(func(resp kmsg.Response) {
			resp.(*kmsg.SASLHandshakeResponse).ErrorCode = kerr.IllegalSaslState.Code
		}), []string{"does not expect authentication"}, kerr.IllegalSaslState},
		{"too old for SASL", withPlain(), func(s *side) {
			s.answer(s.next(), func(resp kmsg.Response) {
				resp.(*kmsg.ApiVersionsResponse).ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: 17}}
			})
		}, []string{"Kafka 1.0 or newer"}, nil},
		{"wrong password", withPlain(), func(s *side) {
			s.versions()
			s.answer(s.next(), nil)
			s.answer(s.next(), func(resp kmsg.Response) {
				r := resp.(*kmsg.SASLAuthenticateResponse)
				r.ErrorCode, r.ErrorMessage = kerr.SaslAuthenticationFailed.Code, kmsg.StringPtr("Invalid username or password")
			})
		}, []string{"broker:9092 by PLAIN", "Invalid username or password"}, kerr.SaslAuthenticationFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Dial(t.Context(), "broker:9092", play(t, tt.o, tt.broker))
			if err == nil {
				c.Close()
				t.Fatal("connected")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%q does not wrap %q", err, tt.is)
			}
			if strings.Contains(err.Error(), "secret\"") {
				t.Errorf("%q tells the password", err)
			}
		})
	}
}

func TestDialLeavesWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Dial(ctx, "broker:9092", play(t, Options{}, func(s *side) { s.next(); s.tryNext() }))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

// TestSessionIsRenewedUnderLoad holds a connection under load through many sessions: the broker
// ends the test when a request comes after a session's end, or within a second of the last renewal,
// and when answers go astray the connection fails.
func TestSessionIsRenewedUnderLoad(t *testing.T) {
	const lifetime, load = 10 * time.Second, 2 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		renewals := 0
		o := play(t, withPlain(), func(s *side) {
			s.versions()
			s.login(lifetime)
			last := time.Now()
			for {
				r, err := s.tryNext()
				if err != nil {
					return
				}
				age := time.Since(last)
				if _, ok := r.Request.(*kmsg.SASLHandshakeRequest); ok {
					if age < lifetime*8/10 || age > lifetime*9/10+time.Second {
						t.Errorf("renewed after %s of %s", age, lifetime)
					}
					s.loginAfter(r, lifetime)
					last, renewals = time.Now(), renewals+1
					continue
				}
				if age > lifetime {
					t.Errorf("%T came %s after the last login", r.Request, age)
				}
				time.Sleep(10 * time.Millisecond)
				s.answer(r, nil)
			}
		})
		c, err := Dial(t.Context(), "broker:9092", o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		slots := make(chan struct{}, 5)
		for began := time.Now(); time.Since(began) < load; {
			slots <- struct{}{}
			c.Send(fetchRequest(0), func(_ kmsg.Response, f *Frame, err error) {
				if err != nil {
					t.Error(err)
				} else {
					f.Release()
				}
				<-slots
			})
		}
		for range cap(slots) {
			slots <- struct{}{}
		}
		if least := int(load/lifetime) - 1; renewals < least {
			t.Errorf("renewed %d times in %s, want at least %d", renewals, load, least)
		}
	})
}

func TestRenewalThatFailsEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := Dial(t.Context(), "broker:9092", play(t, withPlain(), func(s *side) {
			s.versions()
			s.login(10 * time.Second)
			s.answer(s.next(), nil)
			s.answer(s.next(), func(resp kmsg.Response) {
				resp.(*kmsg.SASLAuthenticateResponse).ErrorCode = kerr.SaslAuthenticationFailed.Code
			})
			s.tryNext()
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		time.Sleep(9500 * time.Millisecond)
		_, _, err = c.Request(t.Context(), fetchRequest(0))
		if !errors.Is(err, kerr.SaslAuthenticationFailed) || !strings.Contains(err.Error(), "renew the session") {
			t.Errorf("got %v, want the failed renewal", err)
		}
	})
}

func TestRenewal(t *testing.T) {
	began := time.Now()
	tests := []struct {
		lifetime, earliest, latest time.Duration
	}{
		{time.Hour, 48 * time.Minute, 54 * time.Minute},
		{time.Second, time.Second, 2 * time.Second}, // brokers refuse to do it within a second
		{time.Duration(1<<63 - 1), longestSession, 1<<63 - 1},
	}
	for _, tt := range tests {
		got := renewal(began, tt.lifetime).Sub(began)
		if got < tt.earliest || got > tt.latest {
			t.Errorf("a session of %s is renewed after %s, want %s to %s", tt.lifetime, got, tt.earliest, tt.latest)
		}
	}
	if got := renewal(began, 0); !got.IsZero() {
		t.Errorf("a session without end is renewed at %s", got)
	}
}
