package cluster

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"mirror/sidecar/config"
)

// tokenServer is a token endpoint that knows one client, whose secret is "right", and counts the
// tokens that it gave.
type tokenServer struct {
	*httptest.Server
	given    atomic.Int64
	lifetime time.Duration // 0: not said
}

func newTokenServer(t *testing.T, lifetime time.Duration) *tokenServer {
	t.Helper()
	s := &tokenServer{lifetime: lifetime}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		id, secret, _ := r.BasicAuth()
		if id == "" {
			id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
		}
		if id != "mirror" || secret != "right" {
			w.WriteHeader(http.StatusUnauthorized)
			w.Write([]byte(`{"error": "invalid_client"}`))
			return
		}
		if grant, scope := r.FormValue("grant_type"), r.FormValue("scope"); grant != "client_credentials" || scope != "kafka logs" {
			t.Errorf("grant_type %q, scope %q", grant, scope)
		}
		answer := map[string]any{"access_token": "token-" + string(rune('0'+s.given.Add(1))), "token_type": "Bearer"}
		if s.lifetime > 0 {
			answer["expires_in"] = int(s.lifetime.Seconds())
		}
		json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return s
}

func (s *tokenServer) config(secretFile string) config.OAuthBearer {
	return config.OAuthBearer{TokenURL: s.URL, ClientID: "mirror", ClientSecretFile: secretFile, Scopes: []string{"kafka", "logs"}}
}

func TestOAuthBearer(t *testing.T) {
	server := newTokenServer(t, time.Hour)
	file := filepath.Join(t.TempDir(), "secret")
	write(t, file, "wrong\n")
	c := open(t, fake(t), func(c *config.Cluster) {
		c.SASL = config.SASL{Mechanism: config.OAuth, OAuthBearer: server.config(file)}
	})
	mechanism, err := c.SASL(t.Context())
	if err != nil || mechanism.Name() != "OAUTHBEARER" {
		t.Fatalf("the mechanism is %v, %v", mechanism, err)
	}
	_, _, err = mechanism.Authenticate(t.Context(), "broker:9092")
	if err = c.Explain(err); err == nil || !strings.Contains(err.Error(), server.URL) || !strings.Contains(err.Error(), "check token_url, client_id, client secret") {
		t.Errorf("with a wrong secret: %v", err)
	}
	if strings.Contains(err.Error(), "wrong") {
		t.Errorf("%q tells the secret", err)
	}
	write(t, file, "right\n")
	for range 3 {
		session, first, err := mechanism.Authenticate(t.Context(), "broker:9092")
		if err != nil {
			t.Fatal(err)
		}
		if want := "n,,\x01auth=Bearer token-1\x01\x01"; string(first) != want { // RFC 7628, 3.1
			t.Errorf("sends %q, want %q", first, want)
		}
		if done, _, err := session.Challenge(nil); !done || err != nil {
			t.Errorf("after an empty answer: %t, %v", done, err)
		}
	}
	if n := server.given.Load(); n != 1 {
		t.Errorf("%d tokens for three sessions, want 1", n)
	}
}

func TestTokenIsRenewed(t *testing.T) {
	server := newTokenServer(t, time.Hour)
	file := filepath.Join(t.TempDir(), "secret")
	write(t, file, "right")
	s := &tokenSource{cfg: server.config(file)}
	expect := func(step, want string) {
		t.Helper()
		if got, err := s.token(t.Context()); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", step, got, err, want)
		}
	}
	expect("the first", "token-1")
	if left := time.Until(s.current.Expiry) - time.Until(s.renewAt); left < 14*time.Minute || left > 16*time.Minute {
		t.Errorf("renewed %s before its end, want a quarter of an hour", left)
	}
	expect("in use", "token-1")
	s.renewAt = time.Now()
	expect("three quarters of its life later", "token-2")

	write(t, file, "wrong")
	s.renewAt = time.Now()
	expect("no new one to be had", "token-2")
	s.current = &oauth2.Token{AccessToken: "old", Expiry: time.Now()}
	if got, err := s.token(t.Context()); err == nil {
		t.Errorf("got %q after its end", got)
	}
}

func TestTokenWithoutEnd(t *testing.T) {
	server := newTokenServer(t, 0)
	file := filepath.Join(t.TempDir(), "secret")
	write(t, file, "right")
	s := &tokenSource{cfg: server.config(file)}
	for range 2 {
		if got, err := s.token(t.Context()); err != nil || got != "token-1" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}
