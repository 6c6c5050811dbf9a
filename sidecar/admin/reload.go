package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"mirror/sidecar/config"
	"mirror/sidecar/status"
)

// Reload reloads the config and says what came of it. An error says why it could
// not even be tried.
type Reload func(context.Context) (status.Reload, error)

// ReloadPath is where a reload is asked for.
const ReloadPath = "/-/reload"

// serveReload answers 200 when the config is applied, 422 when it is refused and
// 503 when the mirror is stopping.
func serveReload(w http.ResponseWriter, r *http.Request, reload Reload) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeText(w, http.StatusMethodNotAllowed, "a reload is asked for by POST\n")
		return
	}
	// Who asked may hang up: what has begun is finished.
	done, err := reload(context.WithoutCancel(r.Context()))
	if err != nil {
		writeText(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	code := http.StatusOK
	if done.Result == status.ReloadRefused {
		code = http.StatusUnprocessableEntity
	}
	if wantsJSON(r) {
		writeJSON(w, code, wholeReload(done))
		return
	}
	writeText(w, code, reloadText(done))
}

func wantsJSON(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json")
}

func wholeReload(r status.Reload) status.Reload {
	r.Applied, r.NeedsRestart, r.Problems = array(r.Applied), array(r.NeedsRestart), array(r.Problems)
	return r
}

// reloadText is the answer for people.
func reloadText(r status.Reload) string {
	var b strings.Builder
	list := func(title string, changes []config.Change) {
		if len(changes) > 0 {
			fmt.Fprintf(&b, "%s:\n", title)
		}
		for _, c := range changes {
			fmt.Fprintf(&b, "  %v\n", c)
		}
	}
	switch {
	case r.Result == status.ReloadRefused:
		b.WriteString("refused, nothing has changed:\n")
		for _, p := range r.Problems {
			fmt.Fprintf(&b, "  %s\n", p)
		}
	case len(r.Applied)+len(r.NeedsRestart) == 0:
		b.WriteString("nothing to do: what runs is what the file says\n")
	case len(r.Applied) == 0:
		b.WriteString("nothing to apply without a restart\n")
	}
	list("applied", r.Applied)
	list("needs a restart, not in force", r.NeedsRestart)
	fmt.Fprintf(&b, "config generation %d\n", r.Generation)
	return b.String()
}
