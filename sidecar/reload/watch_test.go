package reload

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mirror/sidecar/status"
)

func TestAFileThatIsWritten(t *testing.T) {
	file := configFile(t, "one")
	l := start(t, nil, file)
	write(t, file, "two")
	l.reloads(status.TriggerFile, "two")
	write(t, file, "two") // the same again is no change
	l.quiet("two")
	write(t, file, "three")
	l.reloads(status.TriggerFile, "three")
}

// Editors write another file and rename it.
func TestAFileThatIsReplaced(t *testing.T) {
	file := configFile(t, "one")
	l := start(t, nil, file)
	for _, text := range []string{"two", "three"} {
		write(t, file+".swp", text)
		must(t, os.Rename(file+".swp", file))
		l.reloads(status.TriggerFile, text)
	}
}

func TestAFileThatGoesAndComesBack(t *testing.T) {
	file := configFile(t, "one")
	l := start(t, nil, file)
	must(t, os.Remove(file))
	write(t, file, "one")
	l.quiet("one")
	must(t, os.Remove(file))
	l.quiet("") // that was not there to be read, so what comes is news
	write(t, file, "one")
	l.reloads(status.TriggerFile, "one")
	must(t, os.Remove(file))
	write(t, file, "two")
	l.reloads(status.TriggerFile, "two")
}

// What is being written is not read before it is whole.
func TestAHalfWrittenFile(t *testing.T) {
	file := configFile(t, "one")
	l := start(t, func(r *Reloader) { r.settle = 300 * time.Millisecond }, file)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	must(t, err)
	want := ""
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for range 40 { // four times as long as a file has to rest
		_, err := f.WriteString("part ")
		must(t, err)
		want += "part "
		select {
		case got := <-l.done:
			t.Fatalf("%+v is read while it is written", got)
		case <-tick.C:
		}
	}
	must(t, f.Close())
	l.reloads(status.TriggerFile, want)
}

// A ConfigMap: the file is a link to ..data/file, ..data a link to a folder, which
// is replaced by a rename.
func TestAConfigMap(t *testing.T) {
	dir := t.TempDir()
	version := func(name, text string) {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		write(t, filepath.Join(dir, name, "mirror.toml"), text)
		must(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version("..1", "one")
	file := filepath.Join(dir, "mirror.toml")
	must(t, os.Symlink("..data/mirror.toml", file))
	l := start(t, nil, file)
	version("..2", "two")
	l.reloads(status.TriggerFile, "two")
	must(t, os.RemoveAll(filepath.Join(dir, "..1")))
	version("..3", "two") // another key of the map has changed
	must(t, os.RemoveAll(filepath.Join(dir, "..2")))
	l.quiet("two")
	version("..4", "four")
	must(t, os.RemoveAll(filepath.Join(dir, "..3")))
	l.reloads(status.TriggerFile, "four")
}

// The folder may be replaced, too.
func TestAFolderThatIsReplaced(t *testing.T) {
	dir := t.TempDir()
	folder := func(name, text string) string {
		name = filepath.Join(dir, name)
		must(t, os.Mkdir(name, 0o700))
		write(t, filepath.Join(name, "mirror.toml"), text)
		return name
	}
	conf := folder("conf", "one")
	l := start(t, func(r *Reloader) { r.poll = 50 * time.Millisecond }, filepath.Join(conf, "mirror.toml"))
	must(t, os.Rename(conf, conf+".old"))
	must(t, os.Rename(folder("new", "two"), conf))
	l.reloads(status.TriggerFile, "two")
	write(t, filepath.Join(conf, "mirror.toml"), "three")
	l.reloads(status.TriggerFile, "three")
	must(t, os.RemoveAll(conf))
	folder("conf", "four")
	l.reloads(status.TriggerFile, "four")
}

func TestPollingIsEnough(t *testing.T) {
	file := configFile(t, "one")
	w := &watch{files: []string{file}, accepted: map[string]content{file: sha256.Sum256([]byte("one"))}, seen: map[string]content{}}
	defer w.close()
	if !w.look() || w.differs() || w.look() {
		t.Error("at first")
	}
	write(t, file, "two")
	if !w.look() || !w.differs() || w.look() || !w.differs() {
		t.Error("changed")
	}
	if w.accept(); w.differs() {
		t.Error("accepted")
	}
	if w.events() != nil || w.errors() != nil {
		t.Error("who should tell?")
	}
}

// What changed between the reading for the start and the watch is not lost.
func TestAFileThatChangedBeforeTheWatch(t *testing.T) {
	file := configFile(t, "two")
	l := launch(t, func(r *Reloader) {
		r.o.Files = func() map[string][sha256.Size]byte {
			return map[string][sha256.Size]byte{file: sha256.Sum256([]byte("one"))}
		}
	}, file)
	l.reloads(status.TriggerFile, "two")
	l.quiet("two")
}

// Further files, such as plugins, may come and go with each reload.
func TestFurtherFiles(t *testing.T) {
	file := configFile(t, "config")
	plugin := filepath.Join(t.TempDir(), "plugin.wasm")
	write(t, plugin, "one")
	l := start(t, nil, file)
	write(t, plugin, "two")
	l.quiet("config")
	own, _ := Digest(file)
	l.watches(map[string][sha256.Size]byte{file: own, plugin: sha256.Sum256([]byte("two"))})
	l.quiet("config") // the request lets it notice
	write(t, plugin, "three")
	l.reloads(status.TriggerFile, "config")

	l.watches(map[string][sha256.Size]byte{file: own})
	l.quiet("config")
	write(t, plugin, "four")
	l.quiet("config")
	// It was read before it changed, and is watched after.
	l.watches(map[string][sha256.Size]byte{file: own, plugin: sha256.Sum256([]byte("three"))})
	l.quiet("config")
	l.reloads(status.TriggerFile, "config")
}

// Those that are read beside the start, as plugins are, are watched without a reload;
// what has become of them since they were read is noticed.
func TestFilesThatAreKnownLater(t *testing.T) {
	file := configFile(t, "config")
	plugin := filepath.Join(t.TempDir(), "plugin.wasm")
	write(t, plugin, "two")
	l := start(t, func(r *Reloader) { r.poll = 20 * time.Millisecond }, file)
	own, _ := Digest(file)
	l.watches(map[string][sha256.Size]byte{file: own, plugin: sha256.Sum256([]byte("one"))})
	l.reloads(status.TriggerFile, "config")
	l.quiet("config")
}

// A pipe can be read only once, by who loads the config.
func TestWhatIsNoFileIsNotRead(t *testing.T) {
	for _, name := range []string{"/dev/stdin", "/dev/null", t.TempDir(), filepath.Join(t.TempDir(), "nothing")} {
		if c, ok := Digest(name); ok {
			t.Errorf("%s is read: %x", name, c)
		}
	}
}

func TestLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	in := func(names ...string) (all []string) {
		for _, n := range names {
			all = append(all, filepath.Join(dir, n))
		}
		return all
	}
	must(t, os.MkdirAll(filepath.Join(dir, "real/sub"), 0o700))
	write(t, filepath.Join(dir, "real/file"), "")
	for name, target := range map[string]string{
		"dir": "real", "file": "dir/sub/../file", "absolute": filepath.Join(dir, "real/file"), "loop": "loop", "broken": "real/none/x",
	} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	for path, want := range map[string][]string{
		"real/file":     in("real/file"),
		"dir/file":      in("dir", "real/file"),
		"file":          in("file", "dir", "real/file"),
		"absolute":      in("absolute", "real/file"),
		"broken":        in("broken", "real/none"),
		"no/such/thing": in("no"),
		"real/file/x":   in("real/file/x"),
	} {
		if got := links(filepath.Join(dir, path)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
	if got := links(filepath.Join(dir, "loop")); len(got) != mostLinks+1 {
		t.Errorf("a loop ends after %d links", len(got))
	}
}
