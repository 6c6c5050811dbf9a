package cluster

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"mirror/sidecar/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake starts a cluster of three brokers with a topic of three partitions.
func fake(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	f, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3), kfake.SeedTopics(3, "topic")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// open opens a cluster at f, after change has completed its config.
func open(t *testing.T, f *kfake.Cluster, change func(c *config.Cluster)) *Cluster {
	t.Helper()
	cfg := config.Cluster{Alias: "primary", Bootstrap: f.ListenAddrs(), ClientID: "mirror"}
	if change != nil {
		change(&cfg)
	}
	c, err := Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// write puts text into a file in a directory of the test.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// reach makes a new client and asks it for the brokers: whatever is wrong with new connections
// shows.
func reach(t *testing.T, c *Cluster) error {
	t.Helper()
	client, err := c.NewClient(kgo.RetryTimeout(1))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	return c.Explain(client.Ping(t.Context()))
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	write(t, empty, "\n")
	missing := filepath.Join(dir, "missing")
	tests := []struct {
		name string
		cfg  config.Cluster
		want string // in the error; "": none
	}{
		{"plaintext", config.Cluster{}, ""},
		{"no TLS, so no files", config.Cluster{TLS: config.TLS{CAFile: missing}}, ""},
		{"no CA file", config.Cluster{TLS: config.TLS{Enabled: true, CAFile: missing}}, "tls.ca_file"},
		{"a CA file without certificates", config.Cluster{TLS: config.TLS{Enabled: true, CAFile: empty}}, "tls.ca_file " + empty + " holds no certificate"},
		{"no certificate", config.Cluster{TLS: config.TLS{Enabled: true, CertFile: missing, KeyFile: missing}}, "tls.cert_file " + missing},
		{"unknown mechanism", config.Cluster{SASL: config.SASL{Mechanism: "digest-md5"}}, `"digest-md5"`},
		{"no password file", config.Cluster{SASL: config.SASL{Mechanism: config.Plain, PasswordFile: missing}}, "sasl.password_file"},
		{"an empty password file", config.Cluster{SASL: config.SASL{Mechanism: config.ScramSHA512, PasswordFile: empty}}, "sasl.password_file " + empty + " is empty"},
		{"no client secret", config.Cluster{SASL: config.SASL{Mechanism: config.OAuth, OAuthBearer: config.OAuthBearer{ClientSecretFile: missing}}}, "sasl.oauthbearer.client_secret_file"},
		{"no krb5.conf", config.Cluster{SASL: config.SASL{Mechanism: config.KerberosV5, Kerberos: config.Kerberos{ConfigFile: missing}}}, "sasl.kerberos.config_file"},
		{"nothing to do for AWS", config.Cluster{SASL: config.SASL{Mechanism: config.AWSMSKIAM}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Alias, tt.cfg.Bootstrap = "primary", []string{"127.0.0.1:1"}
			tt.cfg.ClientID, tt.cfg.Rack = "client", "rack"
			c, err := Open(tt.cfg, slog.New(slog.DiscardHandler))
			switch {
			case err == nil && tt.want != "":
				c.Close()
				t.Errorf("opened, want an error with %q", tt.want)
			case err == nil:
				if c.Alias() != "primary" || c.ClientID() != "client" || c.Rack() != "rack" {
					t.Errorf("alias %s, client id %s, rack %s", c.Alias(), c.ClientID(), c.Rack())
				}
				c.Close()
			case tt.want == "" || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "cluster primary"):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestPasswords(t *testing.T) {
	tests := []struct{ name, mechanism, kafka string }{
		{"plain", config.Plain, "PLAIN"},
		{"SCRAM-SHA-256", config.ScramSHA256, "SCRAM-SHA-256"},
		{"SCRAM-SHA-512", config.ScramSHA512, "SCRAM-SHA-512"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := fake(t, kfake.EnableSASL(), kfake.Superuser(tt.kafka, "user", "new secret"))
			file := filepath.Join(t.TempDir(), "password")
			write(t, file, "old secret\n")
			c := open(t, f, func(c *config.Cluster) {
				c.SASL = config.SASL{Mechanism: tt.mechanism, Username: "user", PasswordFile: file}
			})
			mechanism, err := c.SASL(t.Context())
			if err != nil || mechanism.Name() != tt.kafka {
				t.Errorf("the mechanism is %v, %v", mechanism, err)
			}
			err = reach(t, c)
			if err == nil {
				t.Fatal("connected with an old password")
			}
			for _, secret := range []string{"old secret", "new secret"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q tells the password", err)
				}
			}
			write(t, file, "new secret\n")
			if err := reach(t, c); err != nil {
				t.Errorf("after the password file changed: %v", err)
			}
			literal := open(t, f, func(c *config.Cluster) {
				c.SASL = config.SASL{Mechanism: tt.mechanism, Username: "user", Password: "new secret"}
			})
			if err := reach(t, literal); err != nil {
				t.Errorf("with the password in the config: %v", err)
			}
		})
	}
}

func TestWrongPasswordIsExplained(t *testing.T) {
	f := fake(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "user", "secret"))
	f.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		f.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse) // as a broker answers; the fake one closes
		resp.ErrorCode, resp.ErrorMessage = kerr.SaslAuthenticationFailed.Code, kmsg.StringPtr("Invalid credentials")
		return resp, nil, true
	})
	c := open(t, f, func(c *config.Cluster) {
		c.SASL = config.SASL{Mechanism: config.Plain, Username: "user", Password: "guess"}
	})
	_, err := c.Topics(t.Context(), nil)
	if !errors.Is(err, kerr.SaslAuthenticationFailed) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"cluster primary (127.0.0.1:", "check user, secret and mechanism"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestClientsSayLittle(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo} {
		var out bytes.Buffer
		log := clientLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})))
		want := 0
		for kgoLevel, shown := range map[kgo.LogLevel]bool{
			kgo.LogLevelError: true, kgo.LogLevelWarn: true, kgo.LogLevelInfo: true, kgo.LogLevelDebug: false,
		} {
			if shown && level == slog.LevelDebug {
				want++
			}
			if kgoLevel <= log.Level() {
				log.Log(kgoLevel, "message", "broker", 1)
			}
		}
		if got := strings.Count(out.String(), "level=DEBUG msg=message broker=1"); got != want || strings.Count(out.String(), "\n") != want {
			t.Errorf("at level %s: %d lines at level debug, want %d and no others:\n%s", level, got, want, out.String())
		}
	}
}

func TestClosedContextEndsDial(t *testing.T) {
	c := open(t, fake(t), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if conn, err := c.Dial(ctx, "127.0.0.1:9"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", conn, err)
	}
}
