package contract

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
)

var processScenarios = []Scenario{
	{Name: "terminate", Run: sigtermSavesAndExitsCleanly},
	{Name: "usage", Run: exitStatusesTellWhatWentWrong},
}

func sigtermSavesAndExitsCleanly(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3)
	load := e.Load(e.Source, topic, 3)
	for range 2 {
		p := e.Launch()
		p.Progress(topic, 1500)
		p.Signal(syscall.SIGTERM)
		p.WantExit(0)
	}
	load.Stop()
	p := e.Launch()
	p.CaughtUp(topic)
	p.WantSame(topic)
	for path, words := range map[string]string{"/healthz": "", "/readyz": "", "/metrics": "mirror_", "/status": `"src->dst"`} {
		code, body, err := p.Get(path)
		if path == "/status" { // > may be escaped in JSON
			var any map[string]any
			if err := json.Unmarshal(body, &any); err != nil {
				e.Errorf("/status: %v", err)
			}
			body = []byte(strings.ReplaceAll(string(body), `\u003e`, ">"))
		}
		if err != nil || code != http.StatusOK || !strings.Contains(string(body), words) {
			e.Errorf("%s: %d, %v, want 200 and %q in\n%s", path, code, err, words, body)
		}
	}
	p.Signal(syscall.SIGINT)
	p.WantExit(0)
}

func exitStatusesTellWhatWentWrong(e *Env) {
	flows := e.flows(nil)
	good := configText(flows, "")
	bad := e.ConfigFile(strings.Replace(good, "refresh =", "refersh =", 1))
	e.WantCommand(0, nil, "validate", "-c", e.ConfigFile(good))
	e.WantCommand(1, []string{bad + ":", "refersh", "refresh"}, "validate", "-c", bad)
	e.WantCommand(1, []string{bad + ":", "refersh"}, "run", "-c", bad)
	e.WantCommand(1, []string{"no-such.toml"}, "run", "-c", "no-such.toml")
	e.WantCommand(64, []string{"runn", "run"}, "runn")
	e.WantCommand(64, []string{"no-such-flag"}, "run", "--no-such-flag")
}
