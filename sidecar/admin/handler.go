package admin

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"mirror/sidecar/status"
)

// endpoints are what / lists.
const endpoints = `mirror

/healthz    200 while the process runs
/readyz     200 when it mirrors, else 503; JSON with the reasons, and with warnings
/status     everything it knows of itself, as JSON
/metrics    for Prometheus
/translate  ?group=G: where on the target a consumer group would go on, and why
/lag        what each consumer group would lose or repeat if it failed over now
/-/reload   POST reads the config again: what was applied, what needs a restart
`

func handler(answers Answers, gatherer prometheus.Gatherer) http.Handler {
	source := answers.Status
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, endpoints) })
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { serveReady(w, source()) })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, whole(source())) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET "+TranslatePath, func(w http.ResponseWriter, r *http.Request) { serveTranslate(w, r, answers.Translate) })
	mux.HandleFunc("GET "+LagPath, func(w http.ResponseWriter, r *http.Request) { serveLag(w, r, answers.Lag) })
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, http.StatusNotFound, fmt.Sprintf("there is no %s here; what there is:\n\n%s", r.URL.Path, endpoints))
	})
	// Apart, as only here the path comes before the method.
	top := http.NewServeMux()
	top.HandleFunc(ReloadPath, func(w http.ResponseWriter, r *http.Request) { serveReload(w, r, answers.Reload) })
	top.Handle("/", mux)
	return top
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons"` // why not; empty when ready
	// Warnings are for somebody to see to, ready or not: a config that was refused.
	Warnings []string `json:"warnings"`
}

func serveReady(w http.ResponseWriter, r status.Report) {
	code := http.StatusOK
	if !r.Ready {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, readiness{r.Ready, array(r.Reasons), array(r.Warnings)})
}

// whole makes lists of what is null, so that readers of the JSON need not tell
// the two apart.
func whole(r status.Report) status.Report {
	r.Reasons, r.Warnings = array(r.Reasons), array(r.Warnings)
	r.Config.NeedsRestart = array(r.Config.NeedsRestart)
	if r.Config.Last != nil {
		last := wholeReload(*r.Config.Last)
		r.Config.Last = &last
	}
	flows := make([]status.Flow, 0, len(r.Flows))
	for _, f := range r.Flows {
		f.Topics = array(f.Topics)
		f.Partitions = array(f.Partitions)
		f.Latency.Buckets = array(f.Latency.Buckets)
		f.Plugins = array(f.Plugins)
		flows = append(flows, f)
	}
	r.Flows = flows
	return r
}

func array[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func writeText(w http.ResponseWriter, code int, text string) {
	header(w, "text/plain; charset=utf-8")
	w.WriteHeader(code)
	w.Write([]byte(text))
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	header(w, "application/json")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	e.Encode(value) // fails only when the client has gone
}

func header(w http.ResponseWriter, contentType string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}
