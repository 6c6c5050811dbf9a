package cluster

import (
	"context"
	"fmt"
	"strings"

	krb5client "github.com/jcmturner/gokrb5/v8/client"
	krb5config "github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"

	"mirror/sidecar/config"
)

// gssapi is the mechanism GSSAPI, with Kerberos.
type gssapi struct {
	cfg config.Kerberos
}

func (*gssapi) Name() string { return "GSSAPI" }

// Authenticate logs in at the KDC and gets a ticket for the broker. The session needs only its key,
// so the client, which would renew the login by itself for ever, ends here.
func (g *gssapi) Authenticate(ctx context.Context, addr string) (sasl.Session, []byte, error) {
	client, err := kerberosClient(g.cfg)
	if err != nil {
		return nil, nil, err
	}
	defer client.Destroy()
	auth := kerberos.Auth{Client: client, Service: g.cfg.Service, PersistAfterAuth: true}
	session, first, err := auth.AsMechanism().Authenticate(ctx, addr)
	if err != nil {
		return nil, nil, fmt.Errorf("get a ticket for %s at %s as %s: %w", g.cfg.Service, addr, g.cfg.Principal, err)
	}
	return session, first, nil
}

// kerberosClient returns a client for one session, from krb5.conf and keytab as they are now. It
// has not talked to the KDC yet; whoever logs in with it destroys it.
func kerberosClient(cfg config.Kerberos) (*krb5client.Client, error) {
	conf, err := krb5config.Load(cfg.ConfigFile)
	if err != nil {
		return nil, fmt.Errorf("read sasl.kerberos.config_file %s: %w", cfg.ConfigFile, err)
	}
	keys, err := keytab.Load(cfg.KeytabFile)
	if err != nil {
		return nil, fmt.Errorf("read sasl.kerberos.keytab_file %s: %w", cfg.KeytabFile, err)
	}
	name, realm := cfg.Principal, conf.LibDefaults.DefaultRealm
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		name, realm = name[:at], name[at+1:]
	}
	if realm == "" {
		return nil, fmt.Errorf("sasl.kerberos.principal %s names no realm and %s sets no default_realm", cfg.Principal, cfg.ConfigFile)
	}
	for _, e := range keys.Entries {
		if e.Principal.Realm == realm && strings.Join(e.Principal.Components, "/") == name {
			// Active Directory does not answer the FAST negotiation that the client would begin.
			return krb5client.NewWithKeytab(name, realm, keys, conf, krb5client.DisablePAFXFAST(true)), nil
		}
	}
	return nil, fmt.Errorf("sasl.kerberos.keytab_file %s holds no key of %s@%s", cfg.KeytabFile, name, realm)
}
