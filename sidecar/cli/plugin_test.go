package cli

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mirror/sidecar/status"
)

// Everything that an operator wants to know of a file before a mirror loads it is there,
// as JSON and in words.
func TestPluginInspect(t *testing.T) {
	const path = "../../plugins/testdata/groups.wasm"
	module, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(module))
	code, stdout, stderr := mirrorWith("plugin", "inspect", "-o", "json", path)
	var got inspected
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || stderr != "" {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if got.Path != path || got.SHA256 != digest || got.Bytes != len(module) || got.ABIMinor != 1 || got.MemoryBytes < 2<<20 || got.MemoryBytes > 4<<20 || got.CompileSeconds <= 0 {
		t.Errorf("%+v", got)
	}
	hooks := []string{"mirror_init", "mirror_on_partitions", "mirror_on_commit", "mirror_on_groups", "mirror_tick", "mirror_save", "mirror_restore", "mirror_close"}
	if !slices.Equal(got.Hooks, hooks) || !slices.Contains(got.Imports, "mirror_v1.state_next") || !slices.Contains(got.Imports, "wasi_snapshot_preview1.proc_exit") {
		t.Errorf("hooks %v, imports %v", got.Hooks, got.Imports)
	}
	code, stdout, stderr = mirrorWith("plugin", "inspect", path)
	for _, want := range []string{
		`plugin +` + regexp.QuoteMeta(path), `sha256 +` + digest, fmt.Sprintf(`size +%d bytes`, len(module)), `abi +mirror_v1, minor 1; this mirror takes up to 1`,
		`hooks +mirror_init, .*, mirror_close`, `imports +mirror_v1\.emit, .*`, `memory +\d+ KiB to begin with`, `compiled +in \d+\.\d ms`,
	} {
		if !regexp.MustCompile(`(?m)^`+want+`$`).MatchString(stdout) || code != 0 {
			t.Errorf("exit code %d, no line %q in\n%s%s", code, want, stdout, stderr)
		}
	}
}

// What a mirror would not load is refused: here one of a later minor version.
func TestPluginInspectRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "later.wasm")
	if err := os.WriteFile(path, []byte(later), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := mirrorWith("plugin", "inspect", path)
	if want := "it was built for minor version 2, there are 1 to 1"; code != 1 || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, want %q in\n%s%s", code, want, stdout, stderr)
	}
}

// A file is validated with its plugins: they are loaded and have to take their config,
// with no cluster at hand.
func TestValidateLoadsPlugins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "later.wasm")
	if err := os.WriteFile(path, []byte(later), 0o600); err != nil {
		t.Fatal(err)
	}
	sparse, err := filepath.Abs("../../plugins/testdata/syncs-c.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for want, tables := range map[string]string{
		"it was built for minor version 2, there are 1 to 1": "[[flows.plugins]]\nname = 'offset-sync'\npath = '" + path + "'\n",
		"nowhere.wasm: no such file":                         "[[flows.plugins]]\nname = 'audit'\npath = '/nowhere.wasm'\n",
		`config: lag_max is "many"`:                          "[[flows.plugins]]\nname = 'offset-sync'\nconfig = { lag_max = 'many' }\n",
		"flows[0].checkpoints.enabled: cannot be: none of the plugins exports mirror_on_groups": "[flows.checkpoints]\nenabled = true\n" +
			"[[flows.plugins]]\nname = 'offset-sync'\npath = '" + sparse + "'\n",
	} {
		code, stdout, stderr := mirrorWith("validate", "-c", file(t, twoClusters+tables))
		if code != 1 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d, want %q in\n%s%s", code, want, stdout, stderr)
		}
	}
}

// later is the smallest module that says it was built for minor version 2: a memory,
// mirror_abi_1 and mirror_alloc.
const later = "\x00asm\x01\x00\x00\x00" +
	"\x01\x0a\x02\x60\x00\x01\x7f\x60\x01\x7f\x01\x7f" + // types () → i32, (i32) → i32
	"\x03\x03\x02\x00\x01" +
	"\x05\x03\x01\x00\x01" + // a page of memory
	"\x07\x28\x03\x06memory\x02\x00\x0cmirror_abi_1\x00\x00\x0cmirror_alloc\x00\x01" +
	"\x0a\x0b\x02\x04\x00\x41\x02\x0b\x04\x00\x41\x00\x0b"

// A plugin's file that is replaced takes the place of the one that runs, without a change
// of the config. One that is no plugin changes nothing.
func TestAPluginsFileReloads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "observer.wasm")
	put := func(module []byte) (digest string) {
		t.Helper()
		if err := os.WriteFile(path+".new", module, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", sha256.Sum256(module))
	}
	modules := map[string][]byte{}
	for _, name := range []string{"syncs-c.wasm", "syncs-rust.wasm"} {
		var err error
		if modules[name], err = os.ReadFile("../../plugins/testdata/" + name); err != nil {
			t.Fatal(err)
		}
	}
	first := put(modules["syncs-c.wasm"])
	address, stderr := runMirror(t, file(t, embeddedFlow+fmt.Sprintf("[[flows.plugins]]\nname = 'observer'\npath = '%s'\nemit = { offset_syncs = true }\n", path)))
	runs := func(digest string, generation uint64) {
		t.Helper()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.After(30 * time.Second); ; {
			ps := statusOf(t, address).Flows[0].Plugins
			if len(ps) == 2 && ps[1].Name == "observer" && ps[1].SHA256 == digest && ps[1].Generation == generation {
				return
			}
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("%+v, want %s in generation %d", ps, digest, generation)
			}
		}
	}
	runs(first, 1)
	second := put(modules["syncs-rust.wasm"])
	if r := stderr.await(t, "the config is reloaded"); r["trigger"] != "file" || r["applied"] != 1.0 {
		t.Errorf("%v", r)
	}
	runs(second, 2)
	put([]byte(later))
	if r := stderr.await(t, "the config is refused, nothing has changed"); r["trigger"] != "file" || !strings.Contains(fmt.Sprint(r["err"]), "plugin observer") {
		t.Errorf("%v", r)
	}
	runs(second, 2)
}

// A config that is refused for a plugin is tried again once that plugin's file is there.
func TestAPluginsFileThatIsMissingAndComes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "observer.wasm")
	config := file(t, embeddedFlow)
	_, stderr := runMirror(t, config)
	change(t, config, embeddedFlow+fmt.Sprintf("[[flows.plugins]]\nname = 'observer'\npath = '%s'\nemit = { offset_syncs = true }\n", path))
	refused := func(why string) {
		t.Helper()
		for deadline := time.After(30 * time.Second); !strings.Contains(stderr.String(), why); {
			select {
			case <-stderr.wrote:
			case <-deadline:
				t.Fatalf("no %q in\n%s", why, stderr)
			}
		}
	}
	refused("no such file")
	if err := os.WriteFile(path, []byte(later), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("it was built for minor version 2")
	module, err := os.ReadFile("../../plugins/testdata/syncs-c.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, module, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := stderr.await(t, "the config is reloaded"); r["trigger"] != "file" || r["applied"] != 1.0 {
		t.Errorf("%v", r)
	}
}

// statusOf asks a running mirror.
func statusOf(t *testing.T, address string) (r status.Report) {
	t.Helper()
	resp, err := http.Get("http://" + address + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}
