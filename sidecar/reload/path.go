package reload

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// mostLinks is how many symbolic links a path may go through, as for Linux.
const mostLinks = 40

// links are the names in the file system that decide which file a path means:
// its own, in its folder, and that of each symbolic link on the way. A ConfigMap's
// files are links through one that is called ..data, and it is that one that a new
// version replaces. Where the path ends in nothing the last name is the one that
// is not there.
func links(path string) (names []string) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	at, rest := string(filepath.Separator), elements(path)
	for followed := 0; len(rest) > 0; {
		name := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(name)
		switch {
		case err != nil:
			return append(names, name)
		case info.Mode()&fs.ModeSymlink != 0:
			names = append(names, name)
			target, err := os.Readlink(name)
			if followed++; err != nil || followed > mostLinks {
				return names
			}
			if filepath.IsAbs(target) {
				at = string(filepath.Separator)
			}
			rest = append(elements(target), rest...)
		case len(rest) == 0:
			names = append(names, name)
		default:
			at = name
		}
	}
	return names
}

// elements are the names in a path; .. stays, for it is about what a link means.
func elements(path string) (names []string) {
	for _, name := range strings.Split(filepath.ToSlash(path), "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}
