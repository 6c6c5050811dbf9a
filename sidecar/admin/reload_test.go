package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"mirror/sidecar/config"
	"mirror/sidecar/status"
)

// ask sends a request to /-/reload.
func ask(t *testing.T, url, method, accept string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url+ReloadPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestReload(t *testing.T) {
	refresh := config.Change{Key: "flows[0].refresh", Flow: "a->b", Line: 9, Old: `"30s"`, New: `"1s"`, Live: true}
	listen := config.Change{Key: "admin.listen", Line: 2, Old: `""`, New: `"x:1"`}
	gone := config.Change{Key: "flows[1]", Flow: "b->a", Old: "{…}"}
	for name, c := range map[string]struct {
		done status.Reload
		err  error
		code int
		text string
	}{
		"applied": {
			status.Reload{Result: status.ReloadApplied, Generation: 2, Applied: []config.Change{refresh}, NeedsRestart: []config.Change{listen, gone}}, nil, 200,
			"applied:\n  flows[0].refresh (a->b): \"30s\" → \"1s\"\nneeds a restart, not in force:\n  admin.listen: \"\" → \"x:1\"\n  flows[1] (b->a): removed\nconfig generation 2\n",
		},
		"restart only": {
			status.Reload{Result: status.ReloadApplied, Generation: 1, NeedsRestart: []config.Change{gone}}, nil, 200,
			"nothing to apply without a restart\nneeds a restart, not in force:\n  flows[1] (b->a): removed\nconfig generation 1\n",
		},
		"nothing": {
			status.Reload{Result: status.ReloadApplied, Generation: 1}, nil, 200,
			"nothing to do: what runs is what the file says\nconfig generation 1\n",
		},
		"refused": {
			status.Reload{Result: status.ReloadRefused, Generation: 7, Problems: []string{"m.toml:1: x: wrong", "m.toml:2: y: wrong"}}, nil, 422,
			"refused, nothing has changed:\n  m.toml:1: x: wrong\n  m.toml:2: y: wrong\nconfig generation 7\n",
		},
		"stopping": {status.Reload{}, errors.New("the mirror is stopping"), 503, "the mirror is stopping\n"},
	} {
		t.Run(name, func(t *testing.T) {
			url := serveWith(t, report, func(context.Context) (status.Reload, error) { return c.done, c.err })
			resp, body := ask(t, url, "POST", "*/*")
			if resp.StatusCode != c.code || body != c.text || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
				t.Errorf("%d, got\n%s\nwant %d\n%s", resp.StatusCode, body, c.code, c.text)
			}
			if c.err != nil {
				return
			}
			resp, body = ask(t, url, "POST", "text/html, application/json;q=0.9")
			var got status.Reload
			if err := json.Unmarshal([]byte(body), &got); err != nil || resp.StatusCode != c.code || got.Generation != c.done.Generation ||
				got.Result != c.done.Result || len(got.Applied) != len(c.done.Applied) || len(got.Problems) != len(c.done.Problems) {
				t.Errorf("%d, %v\n%s", resp.StatusCode, err, body)
			}
			for _, list := range []string{"applied", "needs_restart", "problems"} {
				if strings.Contains(body, `"`+list+`": null`) || !strings.Contains(body, `"`+list+`": [`) {
					t.Errorf("%s is no list in %s", list, body)
				}
			}
		})
	}
}

func TestReloadIsForPost(t *testing.T) {
	url := serve(t, report)
	for _, method := range []string{"GET", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		if resp, body := ask(t, url, method, ""); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "POST" || !strings.Contains(body, "POST") {
			t.Errorf("%s: %d, allowed %q, %q", method, resp.StatusCode, resp.Header.Get("Allow"), body)
		}
	}
}

// A reload that has begun is not cut short when who asked hangs up.
func TestWhoAsksForAReloadMayHangUp(t *testing.T) {
	began, hungUp, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	url := serveWith(t, report, func(ctx context.Context) (status.Reload, error) {
		close(began)
		<-hungUp
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond): // the server has noticed by now, if it ever does
		}
		ended <- ctx.Err()
		return status.Reload{}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+ReloadPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		failed <- err
	}()
	<-began
	cancel()
	if err := <-failed; err == nil {
		t.Error("it did not hang up")
	}
	close(hungUp)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
