package integration

import (
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// Plugins in Go are built for another system than everything else, where go list and
// go vet do not look at them. (TestImports reads all files, whatever they are for.)
// There, too, they have the SDK alone of this module, and the SDK does without what
// would make each plugin a megabyte larger.
func TestWhatGuestsImport(t *testing.T) {
	const sdk = "mirror/abi/guest"
	folders := map[string]bool{}
	for _, f := range goFiles(t) {
		if strings.HasPrefix(string(read(t, f.name)), "//go:build wasip1\n") {
			folders[path.Join("mirror", f.dir)] = true
		}
	}
	if !folders[sdk] || len(folders) < 3 {
		t.Fatalf("packages for wasip1: %v; the SDK, an example and the tests' are missing", folders)
	}
	for folder := range folders {
		cmd := exec.Command("go", "list", "-deps", folder)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", folder, err)
		}
		for _, p := range strings.Fields(string(out)) {
			if strings.HasPrefix(p, "mirror/") && p != sdk && p != folder {
				t.Errorf("%s needs %s: a plugin has the SDK alone", folder, p)
			}
			if folder == sdk && slices.Contains([]string{"fmt", "encoding/json", "regexp", "text/template"}, p) {
				t.Errorf("the SDK needs %s", p)
			}
		}
	}
}
