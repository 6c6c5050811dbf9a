package reload

import (
	"crypto/sha256"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// watch knows what is in some files: what was last read of them, which counts, and
// what there was at the last look. Folders are watched, not files: an editor
// replaces a file by another of its name, and a ConfigMap the link to its folder.
type watch struct {
	notify   *fsnotify.Watcher // nil where the system has none: then only looking helps
	files    []string
	names    map[string]bool    // see links
	accepted map[string]content // what counts
	seen     map[string]content // at the last look
}

// content is the digest of a file's bytes.
type content = [sha256.Size]byte

func newWatch(files map[string][sha256.Size]byte, log *slog.Logger) *watch {
	w := &watch{accepted: map[string]content{}, seen: map[string]content{}}
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		w.notify = nil
		log.Warn("the system does not tell of changed files: the config file is looked at now and then instead", "err", err)
	}
	w.follow(files)
	return w
}

func (w *watch) close() {
	if w.notify != nil {
		w.notify.Close() // it only gives back what the process is done with
	}
}

// follow watches these files from now on. Of one that is new, what files says of
// it is what counts.
func (w *watch) follow(files map[string][sha256.Size]byte) {
	w.files = slices.Sorted(maps.Keys(files))
	gone := func(file string, _ content) bool { _, ok := files[file]; return !ok }
	maps.DeleteFunc(w.accepted, gone)
	maps.DeleteFunc(w.seen, gone)
	for file, c := range files {
		if _, ok := w.accepted[file]; !ok {
			w.accepted[file] = c
		}
	}
	w.look()
}

// look reads the files and says whether there is anything new since the last
// look. That a file is gone is nothing new: it may be about to come back.
func (w *watch) look() (fresh bool) {
	w.names = map[string]bool{}
	for _, file := range w.files {
		for _, name := range links(file) {
			w.names[name] = true
		}
	}
	w.rewatch()
	for _, file := range w.files {
		c, ok := Digest(file)
		fresh = fresh || ok && c != w.seen[file]
		if ok {
			w.seen[file] = c
		} else {
			delete(w.seen, file)
		}
	}
	return fresh
}

// rewatch watches the folders of the names, and no others. Watching one again is
// right where another folder has taken its place.
func (w *watch) rewatch() {
	if w.notify == nil {
		return
	}
	folders := map[string]bool{}
	for name := range w.names {
		folders[filepath.Dir(name)] = true
	}
	for _, old := range w.notify.WatchList() {
		if !folders[old] {
			_ = w.notify.Remove(old) // it may be gone by itself
		}
	}
	for folder := range folders {
		_ = w.notify.Add(folder) // if that cannot be, the next look may tell
	}
}

// Digest is the SHA-256 of a file's bytes; false: it is not there to be read, or is no
// regular file.
func Digest(file string) (c [sha256.Size]byte, ok bool) {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() { // a pipe can be read only once
		return c, false
	}
	f, err := os.Open(file)
	if err != nil {
		return c, false
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return c, false
	}
	h.Sum(c[:0])
	return c, true
}

// differs says whether some file was last seen with another content than counts.
func (w *watch) differs() bool {
	for file, c := range w.seen {
		if c != w.accepted[file] {
			return true
		}
	}
	return false
}

// accept makes what was last seen count, also that a file was not there.
func (w *watch) accept() {
	for _, file := range w.files {
		w.accepted[file] = w.seen[file]
	}
}

// concerns says whether an event is about one of the files, or about a folder
// that leads to one.
func (w *watch) concerns(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	return w.names[e.Name] || slices.Contains(w.notify.WatchList(), e.Name)
}

func (w *watch) events() <-chan fsnotify.Event {
	if w.notify == nil {
		return nil
	}
	return w.notify.Events
}

func (w *watch) errors() <-chan error {
	if w.notify == nil {
		return nil
	}
	return w.notify.Errors
}
