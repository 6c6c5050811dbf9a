package cluster

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"mirror/sidecar/config"
)

// tokenSource gets bearer tokens by the client credentials grant, and keeps one for all
// connections.
type tokenSource struct {
	cfg config.OAuthBearer

	mu      sync.Mutex // held while a token is fetched, so that one is fetched for all
	current *oauth2.Token
	renewAt time.Time // zero: the token has no end
}

// tokenTimeout bounds one request to the token endpoint.
const tokenTimeout = 15 * time.Second

// token returns a token of which at least a quarter of its life is left, so that a session that
// lives as long as the token (KIP-368) is not a short one. If there is no new one to be had, the
// old one serves as long as it is valid.
func (s *tokenSource) token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && (s.renewAt.IsZero() || time.Now().Before(s.renewAt)) {
		return s.current.AccessToken, nil
	}
	token, err := s.fetch(ctx)
	if err != nil {
		if s.current.Valid() {
			return s.current.AccessToken, nil
		}
		return "", fmt.Errorf("get a token from %s: %w", s.cfg.TokenURL, err)
	}
	s.current, s.renewAt = token, time.Time{}
	if !token.Expiry.IsZero() {
		s.renewAt = time.Now().Add(time.Until(token.Expiry) * 3 / 4)
	}
	return token.AccessToken, nil
}

func (s *tokenSource) fetch(ctx context.Context) (*oauth2.Token, error) {
	secret, err := clientSecret(s.cfg)
	if err != nil {
		return nil, err
	}
	grant := clientcredentials.Config{
		ClientID:     s.cfg.ClientID,
		ClientSecret: secret,
		TokenURL:     s.cfg.TokenURL,
		Scopes:       s.cfg.Scopes,
	}
	client := &http.Client{Timeout: tokenTimeout}
	return grant.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
}
