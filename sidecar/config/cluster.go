package config

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"strconv"
)

// topicName is what Kafka allows in names, and so in aliases, which become part
// of them.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

func readCluster(alias string, t *table) Cluster {
	if !topicName.MatchString(alias) {
		t.r.problem(t.path, "an alias becomes part of topic names: letters, digits, . _ - only")
	}
	c := Cluster{
		Alias:     alias,
		Bootstrap: readBootstrap(t),
		ClientID:  t.text("client_id", "mirror"),
		Rack:      t.text("rack", ""),
		TLS:       readTLS(t.table("tls")),
		SASL:      readSASL(t.table("sasl")),
	}
	if c.Embedded() && c.TLS.Enabled {
		t.problem("tls", "an embedded cluster has no TLS")
	}
	if c.Embedded() && c.SASL.Mechanism != "" {
		t.problem("sasl", "an embedded cluster has no SASL")
	}
	return c
}

func readBootstrap(t *table) []string {
	t.require("bootstrap")
	addrs := t.texts("bootstrap")
	if _, ok := t.values["bootstrap"].([]any); ok && len(addrs) == 0 {
		t.problem("bootstrap", `needs an address, like "127.0.0.1:9092"`)
	}
	for i, addr := range addrs {
		key := element(t.key("bootstrap"), i)
		if addr == EmbeddedBootstrap {
			if len(addrs) > 1 {
				t.r.problem(key, `"embedded" must stand alone`)
			}
			continue
		}
		if addr == "" && t.values["bootstrap"].([]any)[i] != "" {
			continue // it is wrong, and that has been said
		}
		if err := checkAddress(addr, 1); err != nil {
			t.r.problem(key, "%v", err)
		}
	}
	return addrs
}

// checkAddress wants host:port, with a port from least on.
func checkAddress(addr string, least uint64) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil && host != "" {
		var n uint64
		if n, err = strconv.ParseUint(port, 10, 16); err == nil && n >= least {
			return nil
		}
	}
	return errors.New(`must be host:port, like "127.0.0.1:9092"`)
}

func readTLS(t *table) TLS {
	c := TLS{
		Enabled:            t.boolean("enabled", false),
		CAFile:             t.file("ca_file"),
		CertFile:           t.file("cert_file"),
		KeyFile:            t.file("key_file"),
		ServerName:         t.text("server_name", ""),
		InsecureSkipVerify: t.boolean("insecure_skip_verify", false),
	}
	if !c.Enabled {
		for _, name := range []string{"ca_file", "cert_file", "key_file", "server_name", "insecure_skip_verify"} {
			if t.set(name) {
				t.problem(name, "has no effect while TLS is off: set enabled = true, or remove it")
			}
		}
	}
	if t.set("cert_file") && !t.set("key_file") {
		t.problem("cert_file", "needs key_file beside it")
	}
	if t.set("key_file") && !t.set("cert_file") {
		t.problem("key_file", "needs cert_file beside it")
	}
	return c
}

const defaultService = "kafka"

// set says whether a key of TLS or SASL has a value other than its default,
// which but for Kerberos's service is its type's empty one.
func (t *table) set(name string) bool {
	switch v := t.values[name].(type) {
	case nil:
		return false
	case string:
		return v != "" && (name != "service" || v != defaultService)
	case bool:
		return v
	case []any:
		return len(v) > 0
	case map[string]any:
		sub := table{values: v}
		for k := range v {
			if sub.set(k) {
				return true
			}
		}
		return false
	default:
		return true
	}
}

// mechanisms are the keys of the sasl table that each one reads.
var mechanisms = map[string][]string{
	Plain:       {"username", "password", "password_file"},
	ScramSHA256: {"username", "password", "password_file"},
	ScramSHA512: {"username", "password", "password_file"},
	OAuth:       {"oauthbearer"},
	AWSMSKIAM:   {"aws"},
	KerberosV5:  {"kerberos"},
}

func readSASL(t *table) SASL {
	oauth, aws, kerberos := t.table("oauthbearer"), t.table("aws"), t.table("kerberos")
	c := SASL{
		Mechanism: t.choice("mechanism", "", "", Plain, ScramSHA256, ScramSHA512, OAuth, AWSMSKIAM, KerberosV5),
		Username:  t.text("username", ""),
		Password:  Secret(t.text("password", "")), PasswordFile: t.file("password_file"),
		OAuthBearer: OAuthBearer{
			TokenURL:     oauth.text("token_url", ""),
			ClientID:     oauth.text("client_id", ""),
			ClientSecret: Secret(oauth.text("client_secret", "")), ClientSecretFile: oauth.file("client_secret_file"),
			Scopes: oauth.texts("scopes"),
		},
		AWS: AWS{Profile: aws.text("profile", ""), Role: aws.text("role", ""), Region: aws.text("region", "")},
		Kerberos: Kerberos{
			ConfigFile: kerberos.file("config_file"),
			KeytabFile: kerberos.file("keytab_file"),
			Principal:  kerberos.text("principal", ""),
			Service:    kerberos.text("service", defaultService),
		},
	}
	if t.set("mechanism") && c.Mechanism == "" {
		return c // which is wrong, so what it needs is not known
	}
	checkOtherMechanisms(t, c.Mechanism)
	switch c.Mechanism {
	case Plain, ScramSHA256, ScramSHA512:
		t.mustSet("username")
		t.mustSetOne("password", "password_file")
	case OAuth:
		oauth.mustSet("token_url")
		oauth.mustSet("client_id")
		oauth.mustSetOne("client_secret", "client_secret_file")
		if u, err := url.Parse(c.OAuthBearer.TokenURL); c.OAuthBearer.TokenURL != "" &&
			(err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
			oauth.problem("token_url", "must be an https or http URL")
		}
	case KerberosV5:
		kerberos.mustSet("config_file")
		kerberos.mustSet("keytab_file")
		kerberos.mustSet("principal")
		if c.Kerberos.Service == "" {
			kerberos.problem("service", "must not be empty")
		}
	}
	return c
}

func checkOtherMechanisms(t *table, mechanism string) {
	own := mechanisms[mechanism]
	for _, name := range []string{"username", "password", "password_file", "oauthbearer", "aws", "kerberos"} {
		mine := false
		for _, k := range own {
			mine = mine || k == name
		}
		switch {
		case mine || !t.set(name):
		case mechanism == "":
			t.problem(name, "has no effect without a mechanism")
		default:
			t.problem(name, "is not for mechanism %q", mechanism)
		}
	}
}

// mustSet wants a key that is not empty.
func (t *table) mustSet(name string) {
	if _, ok := t.values[name]; ok && !t.set(name) {
		t.problem(name, "must not be empty")
		return
	}
	t.require(name)
}

// mustSetOne wants exactly one of two keys.
func (t *table) mustSetOne(name, file string) {
	switch {
	case t.set(name) && t.set(file):
		t.problem(file, "is there beside %s: keep one of them", name)
	case !t.set(name) && !t.set(file):
		t.problem(name, "is required, or %s", file)
	}
}
