package plugins

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mirror/plugins/wasm"
)

// Modules that the WebAssembly specification's tests call invalid or malformed are
// refused as they are, before they are metered: that could make them valid.
func TestInvalidModulesAreRefused(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "internal/integration_test/spectest/v2/testdata/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, file := range files {
		var test struct {
			Commands []struct {
				Type, Filename, Text string
				ModuleType           string `json:"module_type"`
			}
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &test); err != nil {
			t.Fatal(err)
		}
		for _, c := range test.Commands {
			if c.Type != "assert_invalid" && c.Type != "assert_malformed" || c.ModuleType != "binary" {
				continue
			}
			if strings.HasPrefix(c.Filename, "utf8-custom-section") { // what Strip leaves out harms nobody
				continue
			}
			module, err := os.ReadFile(filepath.Join(filepath.Dir(file), c.Filename))
			if err != nil {
				t.Fatal(err)
			}
			if isRefused(t, module) {
				refused++
			} else {
				t.Errorf("%s, %s, is taken", c.Filename, c.Text)
			}
		}
	}
	t.Logf("%d modules", refused)
	if refused < 1000 {
		t.Errorf("%d modules are refused: there should be more", refused)
	}
}

// isRefused says whether one of the steps that come before metering fails. wazero takes
// a mutable global that is imported for a constant; Inspect refuses to import any.
func isRefused(t *testing.T, module []byte) bool {
	facts, err := wasm.Scan(module)
	if err != nil {
		return true
	}
	bare, err := wasm.Strip(module)
	return err != nil || validate(t.Context(), bare, DefaultMemory/page) != nil ||
		slices.ContainsFunc(facts.Imports, func(i wasm.Import) bool { return i.Kind == wasm.Global })
}
