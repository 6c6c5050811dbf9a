package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/oauth2"

	"mirror/sidecar/config"
)

func TestExplain(t *testing.T) {
	c, err := Open(config.Cluster{Alias: "backup", Bootstrap: []string{"127.0.0.1:1"}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tests := []struct {
		err  error
		want string // the advice; "": none
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7}, Err: &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}}, "nothing listens there"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "nowhere", Err: "no such host"}}, "the name nowhere cannot be resolved"},
		{&os.SyscallError{Err: syscall.EHOSTUNREACH}, "there is no route"},
		{&os.SyscallError{Err: syscall.ECONNRESET}, "compare tls and sasl"},
		{io.EOF, "compare tls and sasl"},
		{&kgo.ErrFirstReadEOF{}, "compare tls and sasl"},
		{context.DeadlineExceeded, "does not answer in time"},
		{os.ErrDeadlineExceeded, "does not answer in time"},
		{tls.RecordHeaderError{}, "does not speak TLS"},
		{errors.New("invalid large response size 352518912 > limit 104857600; the first three bytes received appear to be a tls alert record for TLS v1.2"), "set tls.enabled = true"},
		{errors.New("remote error: tls: unknown certificate authority"), "check tls.cert_file"},
		{kerr.SaslAuthenticationFailed, "check user, secret and mechanism"},
		{kerr.UnsupportedSaslMechanism, "set sasl.mechanism"},
		{kerr.IllegalSaslState, "remove the sasl table"},
		{&oauth2.RetrieveError{ErrorCode: "invalid_client"}, "check token_url"},
		{kerr.TopicAuthorizationFailed, "READ and DESCRIBE on the topic"},
		{kerr.ClusterAuthorizationFailed, "CREATE for topics"},
		{kerr.GroupAuthorizationFailed, "DESCRIBE on the group at the source"},
		{kerr.InvalidTopicException, ""},
		{context.Canceled, ""},
	}
	for _, tt := range tests {
		wrapped := fmt.Errorf("list topics: %w", tt.err)
		got := c.Explain(wrapped)
		if !errors.Is(got, tt.err) {
			t.Errorf("%q no longer wraps %v", got, tt.err)
		}
		if tt.want == "" {
			if got.Error() != "cluster backup: "+wrapped.Error() {
				t.Errorf("got %q", got)
			}
			continue
		}
		prefix := "cluster backup: " + wrapped.Error() + "; "
		if ofConnection(tt.err) && !strings.Contains(tt.err.Error(), "127.0.0.1:7") { // it says where that is
			prefix = "cluster backup (127.0.0.1:1): " + wrapped.Error() + "; "
		}
		if !strings.HasPrefix(got.Error(), prefix) || !strings.Contains(got.Error(), tt.want) {
			t.Errorf("got %q, want %q and %q", got, prefix, tt.want)
		}
		if again := c.Explain(fmt.Errorf("flow: %w", got)); strings.Count(again.Error(), "cluster backup") != 1 {
			t.Errorf("explained twice: %q", again)
		}
	}
	if err := c.Explain(nil); err != nil {
		t.Errorf("nil became %v", err)
	}
}

// TestNothingListens reports in reasonable time, with what to do.
func TestNothingListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c, err := Open(config.Cluster{Alias: "backup", Bootstrap: []string{addr}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = reach(t, c)
	if err == nil || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "nothing listens there") {
		t.Errorf("got %v", err)
	}
}
