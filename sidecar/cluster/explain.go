package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/oauth2"
)

// Explain adds to an error from talking to the cluster which cluster it was, where it is if the error
// is about a connection and does not say to which address, and, if that is known, what to do about it. An error that was explained before is returned as it is, and so is nil.
func (c *Cluster) Explain(err error) error {
	var done *explained
	if err == nil || errors.As(err, &done) {
		return err
	}
	e := &explained{cluster: c.cfg.Alias, err: err, advice: advice(err)}
	if ofConnection(err) && !address.MatchString(err.Error()) {
		e.cluster += fmt.Sprintf(" (%s)", strings.Join(c.cfg.Bootstrap, ", "))
	}
	return e
}

// address is what an error shows that says where it comes from.
var address = regexp.MustCompile(`[\w.\-\]]:\d+`)

// ofConnection says that err is about a connection to a broker, and not about what was asked for on
// it. The client does not always say which broker that was.
func ofConnection(err error) bool {
	return adviseTLS(err) != "" || adviseNetwork(err) != "" ||
		errors.Is(err, kerr.SaslAuthenticationFailed) || errors.Is(err, kerr.UnsupportedSaslMechanism) || errors.Is(err, kerr.IllegalSaslState)
}

type explained struct {
	cluster string // and where it is, if err does not say that
	err     error
	advice  string
}

func (e *explained) Error() string {
	text := fmt.Sprintf("cluster %s: %v", e.cluster, e.err)
	if e.advice != "" {
		text += "; " + e.advice
	}
	return text
}

func (e *explained) Unwrap() error { return e.err }

// advice returns what to do about err, "" if that is not known.
func advice(err error) string {
	for _, a := range []func(error) string{adviseTLS, adviseBroker, adviseNetwork} {
		if text := a(err); text != "" {
			return text
		}
	}
	return ""
}

// adviseTLS knows the errors of certificates and handshakes.
func adviseTLS(err error) string {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return "set tls.ca_file to the certificate of the authority that signed the brokers'"
	case errors.As(err, &hostname):
		return "the broker's certificate is for other names: dial one of them, or set tls.server_name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the broker's certificate is not valid at this time: renew it, or set the clock right"
	case errors.As(err, &record):
		return "the listener does not speak TLS: use its TLS port, or set tls.enabled = false"
	}
	// What follows has no type of its own.
	text := err.Error()
	if strings.Contains(text, "appear to be a tls alert record") { // kgo, of the size of an answer
		return "the listener speaks TLS: set tls.enabled = true, or use its plaintext port"
	}
	for _, alert := range []string{"bad certificate", "certificate required", "unknown certificate authority", "expired certificate", "certificate unknown", "unknown certificate"} {
		if strings.Contains(text, "remote error: tls: "+alert) {
			return "the broker refuses the mirror's certificate: check tls.cert_file and tls.key_file"
		}
	}
	return ""
}

// adviseBroker knows what brokers answer.
func adviseBroker(err error) string {
	var token *oauth2.RetrieveError
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "check user, secret and mechanism in the cluster's sasl table"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "set sasl.mechanism to one that the listener offers"
	case errors.Is(err, kerr.IllegalSaslState):
		return "the listener expects no authentication: use the SASL listener, or remove the sasl table"
	case errors.As(err, &token):
		return "check token_url, client_id, client secret and scopes in sasl.oauthbearer"
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return "grant the mirror's user READ and DESCRIBE on the topic at the source, WRITE, DESCRIBE and CREATE at the target"
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		return "grant the mirror's user the right on the cluster: CREATE for topics, IDEMPOTENT_WRITE before Kafka 2.8"
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return "grant the mirror's user DESCRIBE on the group at the source, DESCRIBE and READ at the target"
	}
	return ""
}

// adviseNetwork knows connections that fail or end.
func adviseNetwork(err error) string {
	var (
		name  *net.DNSError
		first *kgo.ErrFirstReadEOF
		timed net.Error
	)
	switch {
	case errors.As(err, &name):
		return fmt.Sprintf("the name %s cannot be resolved: check bootstrap, and the brokers' advertised.listeners", name.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: check bootstrap, the brokers' advertised.listeners, and whether the brokers run"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route: check bootstrap and the network"
	case errors.As(err, &first):
		return "compare tls and sasl with what the listener expects"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "the broker closed the connection: compare tls and sasl with what the listener expects"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timed) && timed.Timeout():
		return "the broker does not answer in time: check the address, firewalls and the broker's load"
	}
	return ""
}
