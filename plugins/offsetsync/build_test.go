package offsetsync

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The module is of this source, also where there is no rustc to build it anew.
func TestBuiltFromItsSource(t *testing.T) {
	files, err := filepath.Glob("guest/*.rs") // sorted, as by the shell
	if err != nil || len(files) == 0 {
		t.Fatalf("the source: %v, %v", files, err)
	}
	digest := sha256.New()
	for _, f := range append(files, "../../abi/rust/mirror.rs", "../../abi/rust/state.rs") {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		digest.Write(b)
	}
	if want := fmt.Sprintf("\nsource %x\n", digest.Sum(nil)); !strings.HasSuffix(Build, want) {
		t.Errorf("the source has changed since the module was built: just wasm\n%sbut now%s", Build, want)
	}
}
