package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
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

// variants are configs of a flow, good and bad in turn, each good one with other
// plugins. One topic is selected by all, another comes and goes.
func (f *Flow) variants(admin string) (texts []string) {
	sparse, broken := f.e.sparsePlugin(), filepath.Join(f.e.TempDir(), "broken.wasm")
	f.e.write(broken, "\x00asm\x01\x00\x00\x00 and no section")
	variant := func(topics, keys, tables string) string {
		v := *f
		v.Topics, v.Keys, v.Tables = topics, keys, tables
		return configText([]*Flow{&v}, admin)
	}
	both := func(tables string) string {
		return variant(f.Topics, "commit_interval = \"50ms\"\ngrace = \"20s\"", tables)
	}
	one := func(tables string) string { // lanes need a restart
		return variant(f.e.Topic("stays"), "commit_interval = \"200ms\"\nlanes = 3", tables)
	}
	two := fmt.Sprintf("[[flows.plugins]]\nname = \"offset-sync\"\nconfig = { lag_max = 10 }\n"+
		"[[flows.plugins]]\nname = \"observer\"\npath = %q\nfailure = \"skip\"\nemit = { offset_syncs = true }\n", sparse)
	good := []string{both(""), both(f.e.sparseOffsetSync()), one(offsetSyncOff), one(two)}
	bad := []string{
		strings.Replace(good[0], "refresh =", "refersh =", 1),
		both(fmt.Sprintf("[[flows.plugins]]\nname = \"observer\"\npath = %q\nconfig = { every = \"some\" }\n", sparse)), // it says no
		good[2] + "\n[[flows",
		one(fmt.Sprintf("[[flows.plugins]]\nname = \"observer\"\npath = %q\n", broken)),
	}
	for i := range good {
		texts = append(texts, good[i], bad[i])
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
	for _, topic := range []string{stays, comes} {
		f.swapped(topic)
	}
	for _, l := range loads {
		l.Stop()
	}
	f.CaughtUp(stays, comes)
	f.WantSame(stays, comes)
	for _, topic := range []string{stays, comes} {
		f.WantSyncs(f.Target, reloadedSyncs, topic)
	}
}

const reloadedSyncs = "mm2-offset-syncs.src.internal"

// swapped waits for offset syncs of what is stored from now on. A reload is answered
// before lanes have swapped: what they store meanwhile is the plugin's that goes, and
// that may keep few of them.
func (f *Flow) swapped(topic string) {
	e := f.e
	e.Helper()
	var ends [3]int64
	for p, rs := range e.Read(f.Source, topic) {
		ends[p] = last(rs).Offset
	}
	f.Wait("offset syncs of "+topic+" after the last reload", func() string {
		if !e.Exists(f.Target, reloadedSyncs) {
			return "there is no topic of them"
		}
		for p, pairs := range e.OffsetSyncs(f.Target, reloadedSyncs, topic, len(ends)) {
			n := 0
			for _, s := range pairs {
				if s.Upstream > ends[p] {
					n++
				}
			}
			if n < 3 {
				return fmt.Sprintf("partition %d has %d after %d", p, n, ends[p])
			}
		}
		return ""
	})
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
	before, times, done := p.holds(), Reloads(100), 0
	var warm holding // by then every kind of plugin has been there
	p.reloadAgainAndAgain(times, p.admin, func(text string) status.Reload {
		if done++; done == times/4 {
			warm = p.holds()
		}
		e.write(p.config, text)
		return p.post()
	})
	e.Eventually("the process to hold as much as before", func() string {
		now := p.holds()
		switch {
		case now.goroutines > before.goroutines+10, // some are of connections that come and go
			now.files > before.files+10,
			now.code > before.code,
			now.memory > warm.memory+growth:
			return fmt.Sprintf("%+v; in the beginning %+v, after a quarter %+v", now, before, warm)
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
