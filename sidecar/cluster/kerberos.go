package cluster

import (
	"fmt"
	"strings"

	krb5client "github.com/jcmturner/gokrb5/v8/client"
	krb5config "github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"mirror/sidecar/config"
)

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
