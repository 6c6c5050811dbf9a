package integration

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tracked lists the repository's files, by their names from its top, and those
// that are about to be added.
func tracked(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	files := strings.Fields(string(out))
	return slices.DeleteFunc(files, func(f string) bool {
		_, err := os.Stat(filepath.Join("..", f))
		return err != nil // deleted, not committed yet
	})
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// goFile is a parsed source file.
type goFile struct {
	name, dir string
	test      bool
	ast       *ast.File
	set       *token.FileSet
}

func goFiles(t *testing.T) (all []goFile) {
	t.Helper()
	for _, f := range tracked(t) {
		if filepath.Ext(f) != ".go" {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, f, read(t, f), parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, goFile{f, filepath.Dir(f), strings.HasSuffix(f, "_test.go"), tree, set})
	}
	return all
}

// imports are the packages that a file imports.
func (f goFile) imports() (all []string) {
	for _, i := range f.ast.Imports {
		path, _ := strconv.Unquote(i.Path.Value) // the parser has seen to it
		all = append(all, path)
	}
	return all
}

func TestTopLevel(t *testing.T) {
	allowed := []string{"sidecar", "plugins", "abi", "examples", "integration", "main.go", "mirror.toml",
		"go.mod", "go.sum", "Justfile", "README.md", "LICENSE"}
	for _, f := range tracked(t) {
		top, _, _ := strings.Cut(f, "/")
		if !slices.Contains(allowed, top) && !strings.HasPrefix(top, ".") {
			t.Errorf("%s: the top level has %v and dotfiles only", f, allowed)
		}
	}
}

// layers of sidecar, lowest first. A package imports lower ones only.
var layers = [][]string{
	{"batch", "config", "embedded"},
	{"status"},
	{"policy", "cluster", "metrics", "compare", "wire", "reload"},
	{"fetch", "produce", "positions", "offsets", "state", "topics", "groups", "admin"},
	{"resume", "failover"},
	{"pipeline"},
	{"."}, // the wiring
	{"demo"},
	{"cli"},
}

// layer is where a package of sidecar stands, -1: nowhere.
func layer(path string) int {
	name, ok := strings.CutPrefix(path, "mirror/sidecar/")
	if path == "mirror/sidecar" {
		name = "."
	} else if !ok {
		return -1
	}
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, name) })
}

// The arrows are main → sidecar → plugins → abi, and from higher layers of
// sidecar to lower ones. (What tests import is their own affair.)
func TestImports(t *testing.T) {
	order := []string{"mirror/abi", "mirror/plugins", "mirror/sidecar", "mirror/integration"}
	place := func(path string) int {
		return slices.IndexFunc(order, func(top string) bool { return path == top || strings.HasPrefix(path, top+"/") })
	}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		self := "mirror/" + filepath.ToSlash(f.dir)
		if f.dir == "." {
			self = "mirror"
		}
		for _, path := range f.imports() {
			if path != "mirror" && !strings.HasPrefix(path, "mirror/") {
				continue
			}
			switch {
			case self == "mirror":
				if path != "mirror/sidecar/cli" {
					t.Errorf("%s imports %s: main only starts mirror/sidecar/cli", f.name, path)
				}
			case strings.HasPrefix(self, "mirror/examples/"):
				if path != "mirror/abi/guest" {
					t.Errorf("%s imports %s: a plugin has the SDK alone", f.name, path)
				}
			case place(path) > place(self):
				t.Errorf("%s imports %s: the arrows are main, sidecar, plugins, abi", f.name, path)
			case layer(self) < 0 && strings.HasPrefix(self, "mirror/sidecar"):
				t.Errorf("%s is in no layer: say in this test where it stands", self)
			case layer(self) >= 0 && layer(path) >= layer(self) && path != self:
				t.Errorf("%s imports %s, which is not lower", f.name, path)
			}
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	const most = 420
	for _, f := range goFiles(t) {
		if n := bytes.Count(read(t, f.name), []byte("\n")); n > most {
			t.Errorf("%s has %d lines: split it, %d are the limit", f.name, n, most)
		}
	}
}

// forbidden words are put together here, so that this file has none of them.
func TestForbiddenWords(t *testing.T) {
	words := []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}
	for _, host := range []string{"py!pi.org", "python!hosted.org", "npm!js.org", "npm!js.com", "crates!.io", "proxy.go!lang.org", "sum.go!lang.org",
		"repo1.ma!ven.org", "repo.ma!ven.apache.org", "deb.deb!ian.org", "registry-1.doc!ker.io"} {
		words = append(words, strings.Replace(host, "!", "", 1))
	}
	for _, f := range tracked(t) {
		if f == "go.sum" {
			continue
		}
		for i, line := range strings.Split(string(read(t, f)), "\n") {
			for _, w := range words {
				if strings.Contains(line, w) {
					t.Errorf("%s:%d has %q", f, i+1, w)
				}
			}
		}
	}
}

// Where goroutines start, goleak looks for those that were left behind.
func TestGoroutinesAreWaitedFor(t *testing.T) {
	starts, checked := map[string]string{}, map[string]bool{}
	for _, f := range goFiles(t) {
		if slices.Contains(f.imports(), "go.uber.org/goleak") {
			checked[f.dir] = true
		}
		if f.test || f.dir == "integration/bench" { // a program that nothing outlives
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				starts[f.dir] = f.set.Position(n.Pos()).String()
			case *ast.CallExpr: // errgroup and sync.WaitGroup
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" {
					starts[f.dir] = f.set.Position(n.Pos()).String()
				}
			}
			return true
		})
	}
	for dir, where := range starts {
		if !checked[dir] {
			t.Errorf("%s starts a goroutine at %s, and its tests do not use goleak", dir, where)
		}
	}
}

// A test that sleeps is slow, or wrong on a slow machine, unless time is synctest's.
func TestNoSleepInTests(t *testing.T) {
	for _, f := range goFiles(t) {
		if !f.test || slices.Contains(f.imports(), "testing/synctest") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s: wait for a condition, or use testing/synctest", f.set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

func TestDocumented(t *testing.T) {
	documented := map[string]bool{} // folders with a package comment
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		documented[f.dir] = documented[f.dir] || f.ast.Doc != nil
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && d.Name.Name != "String" && d.Name.Name != "Error" {
					t.Errorf("%s: %s has no comment", f.set.Position(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
						t.Errorf("%s: %s has no comment", f.set.Position(s.Pos()), s.Name.Name)
					}
				}
			}
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no comment", dir)
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	x := d.Recv.List[0].Type
	if s, ok := x.(*ast.StarExpr); ok {
		x = s.X
	}
	id, ok := x.(*ast.Ident)
	return ok && id.IsExported()
}
