package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"mirror/sidecar/config"
)

// mechanism returns the SASL mechanism of cfg, nil if there is none. It serves all connections;
// files are read at every authentication, and once here to say at once what is wrong with them.
func mechanism(cfg config.SASL) (sasl.Mechanism, error) {
	switch cfg.Mechanism {
	case "":
		return nil, nil
	case config.Plain:
		if _, err := password(cfg); err != nil {
			return nil, err
		}
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			pass, err := password(cfg)
			return plain.Auth{User: cfg.Username, Pass: pass}, err
		}), nil
	case config.ScramSHA256, config.ScramSHA512:
		if _, err := password(cfg); err != nil {
			return nil, err
		}
		auth := func(context.Context) (scram.Auth, error) {
			pass, err := password(cfg)
			return scram.Auth{User: cfg.Username, Pass: pass}, err
		}
		if cfg.Mechanism == config.ScramSHA256 {
			return scram.Sha256(auth), nil
		}
		return scram.Sha512(auth), nil
	case config.OAuth:
		if _, err := clientSecret(cfg.OAuthBearer); err != nil {
			return nil, err
		}
		tokens := &tokenSource{cfg: cfg.OAuthBearer}
		return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			token, err := tokens.token(ctx)
			return oauth.Auth{Token: token}, err
		}), nil
	case config.AWSMSKIAM:
		return &mskIAM{cfg: cfg.AWS}, nil
	case config.KerberosV5:
		if _, err := kerberosClient(cfg.Kerberos); err != nil {
			return nil, err
		}
		return &gssapi{cfg: cfg.Kerberos}, nil
	}
	return nil, fmt.Errorf("sasl.mechanism %q is not known", cfg.Mechanism)
}

func password(cfg config.SASL) (string, error) {
	return secret("sasl.password_file", cfg.PasswordFile, cfg.Password)
}

func clientSecret(cfg config.OAuthBearer) (string, error) {
	return secret("sasl.oauthbearer.client_secret_file", cfg.ClientSecretFile, cfg.ClientSecret)
}

// secret returns the secret in the file that key names, without the line end, or the one that
// stands in the config itself.
func secret(key, file string, literal config.Secret) (string, error) {
	if file == "" {
		return literal.Reveal(), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", key, err)
	}
	s := strings.TrimRight(string(text), "\r\n")
	if s == "" {
		return "", fmt.Errorf("%s %s is empty", key, file)
	}
	return s, nil
}
