package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mirror/sidecar/status"
)

var reloadScenarios = []Scenario{
	{Name: "reloads", Limit: 10 * time.Minute, Run: reloadsUnderLoadLoseNothing},
	{Name: "reloads-of-a-process", Limit: 10 * time.Minute, Run: reloadsOfAProcessLoseNothing},
	{Name: "reload-triggers", Run: fileSignalAndVerbReload},
}

// Reloads is how often the config of a mirror is changed under load. A long round
// sets MIRROR_TEST_RELOADS.
func Reloads(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("MIRROR_TEST_RELOADS")); err == nil {
		return n
	}
	return usual
}

// variants are configs of a flow, good and bad in turn. One topic is selected by
// all, another comes and goes.
func (f *Flow) variants(admin string) (texts []string) {
	both, one := *f, *f
	both.Keys = "commit_interval = \"50ms\"\ngrace = \"20s\""
	one.Topics = f.e.Topic("stays")
	one.Keys = "commit_interval = \"200ms\"\nlanes = 3" // which needs a restart
	for _, good := range []*Flow{&both, &one} {
		text := configText([]*Flow{good}, admin)
		texts = append(texts, text, strings.Replace(text, "refresh =", "refersh =", 1), text, text+"\n[[flows")
	}
	return texts
}

// reloadAgainAndAgain applies the variants while records are written, and checks
// that in the end both topics are what they are at the source.
func (f *Flow) reloadAgainAndAgain(times int, admin string, reload func(text string) status.Reload) {
	e := f.e
	stays, comes := e.Topic("stays"), e.Topic("comes")
	texts := f.variants(admin)
	var loads []*Load
	for _, topic := range []string{stays, comes} {
		loads = append(loads, e.Load(f.Source, topic, 3))
		f.Progress(topic, 100)
	}
	refused := 0
	for i := range times {
		want := status.ReloadApplied
		if i%2 == 1 {
			want = status.ReloadRefused
			refused++
		}
		if r := reload(texts[i%len(texts)]); r.Result != want {
			e.Fatalf("reload %d: %+v, want it %s", i, r, want)
		}
		// Most come before the one before has been followed up; some wait for that.
		switch i % 40 {
		case 4:
			f.Wait(comes+" to leave", func() string {
				if _, ok := f.Partition(comes, 0); ok {
					return "it is there"
				}
				return ""
			})
		case 9, 24, 39:
			f.Progress(stays, 10) // goes on whatever is reloaded
		}
	}
	if r := reload(texts[0]); r.Result != status.ReloadApplied || len(r.Problems) > 0 {
		e.Fatalf("the last reload: %+v", r)
	}
	c := f.status().Config
	// Where the file is watched, it may have been quicker than who asked.
	if got := c.Reloads[status.ReloadRefused]; got < uint64(refused) || c.Last == nil || c.Last.Result != status.ReloadApplied {
		e.Errorf("%d reloads are refused, want %d; the last is %+v", got, refused, c.Last)
	}
	for _, l := range loads {
		l.Stop()
	}
	f.CaughtUp(stays, comes)
	f.WantSame(stays, comes)
}

// firstRecords makes the two topics, with some records.
func (e *Env) firstRecords() {
	e.Helper()
	for _, topic := range []string{e.Topic("stays"), e.Topic("comes")} {
		e.Create(e.Source, topic, 3)
		for p := range int32(3) {
			e.Put(e.Source, topic, Numbered(p, "first", 200)...)
		}
	}
}

func reloadsUnderLoadLoseNothing(e *Env) {
	e.firstRecords()
	m := e.Start()
	times := Reloads(100)
	m.most += times // what is asked for is answered in the log
	m.reloadAgainAndAgain(times, "", m.reload)
	if n := strings.Count(m.Log(), "topic is not selected any more"); n < 2 {
		e.Errorf("the topic that comes and goes went %d times", n)
	}
}

func reloadsOfAProcessLoseNothing(e *Env) {
	e.firstRecords()
	p := e.Launch()
	p.CaughtUp(e.Topic("stays"), e.Topic("comes"))
	before := p.goroutines()
	p.reloadAgainAndAgain(Reloads(100), p.admin, func(text string) status.Reload {
		e.write(p.config, text)
		return p.post()
	})
	// Some are of connections that come and go.
	e.Eventually("as few goroutines as before", func() string {
		if n := p.goroutines(); n > before+10 {
			return fmt.Sprintf("%d, %d before", n, before)
		}
		return ""
	})
	p.Signal(syscall.SIGTERM)
	p.WantExit(0)
}

func fileSignalAndVerbReload(e *Env) {
	e.firstRecords()
	p := e.Launch(Flow{Topics: e.Topic("stays")})
	last := func(trigger, result string) func() string {
		return func() string {
			l := p.status().Config.Last
			if l == nil || l.Trigger != trigger || l.Result != result {
				return fmt.Sprintf("the last reload is %+v", l)
			}
			return ""
		}
	}
	good := configText(p.Flows, p.admin)
	e.write(p.config, strings.Replace(good, "refresh =", "refersh =", 1))
	e.Eventually("the file to be refused", last(status.TriggerFile, status.ReloadRefused))
	code, body, err := p.Get("/readyz")
	if err != nil || code != http.StatusOK || !strings.Contains(string(body), "refersh") {
		e.Errorf("/readyz: %d, %v, want 200 with a warning in\n%s", code, err, body)
	}
	if _, metrics, err := p.Get("/metrics"); err != nil || !strings.Contains(string(metrics), "mirror_config_last_reload_successful 0\n") {
		e.Errorf("no mirror_config_last_reload_successful 0 in the metrics, %v", err)
	}
	e.WantCommand(1, []string{"refused", "refersh", "refresh"}, "reload", "-c", p.config)

	both := *p.Flow
	both.Topics = e.Topic(".*")
	e.write(p.config, configText([]*Flow{&both}, p.admin))
	e.Eventually("the file to be applied", last(status.TriggerFile, status.ReloadApplied))
	p.CaughtUp(e.Topic("stays"), e.Topic("comes"))
	p.WantSame(e.Topic("stays"), e.Topic("comes"))
	if _, body, err := p.Get("/readyz"); err != nil || strings.Contains(string(body), "refersh") {
		e.Errorf("the warning is still there, or %v: %s", err, body)
	}
	p.Signal(syscall.SIGHUP)
	e.Eventually("a reload by a signal", last(status.TriggerSignal, status.ReloadApplied))
	e.WantCommand(0, nil, "reload", "-c", p.config)
	if why := last(status.TriggerRequest, status.ReloadApplied)(); why != "" {
		e.Error(why)
	}
	p.Signal(syscall.SIGTERM)
	p.WantExit(0)
}

func (e *Env) write(file, text string) {
	e.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		e.Fatal(err)
	}
}

// post asks the process for a reload.
func (p *Process) post() (r status.Reload) {
	p.e.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+p.admin+"/-/reload", nil)
	if err != nil {
		p.e.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := httpClient.Do(req)
	if err != nil {
		p.e.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		p.e.Fatalf("the answer to a reload: %v", err)
	}
	return r
}

// goroutines is how many the process has.
func (p *Process) goroutines() int {
	p.e.Helper()
	_, metrics, err := p.Get("/metrics")
	if err != nil {
		p.e.Fatal(err)
	}
	for line := range bytes.Lines(metrics) {
		if n, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("go_goroutines ")); ok {
			count, err := strconv.Atoi(string(n))
			if err != nil {
				p.e.Fatal(err)
			}
			return count
		}
	}
	p.e.Fatal("no go_goroutines in the metrics")
	return 0
}
