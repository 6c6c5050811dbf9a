package plugins

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
)

// How large a plugin's file may be, and what it inflates to, in bytes.
const (
	MaxFile     = 8 << 20
	MaxInflated = 32 << 20
)

// Binary is a plugin's file: read once, so that what was hashed is what is compiled.
type Binary struct {
	Path   string            // where it was read from
	Digest [sha256.Size]byte // SHA-256 of the file
	Size   int               // of the file, in bytes
	wasm   []byte
}

// Read reads a .wasm, or one that is compressed with gzip. Pin is the SHA-256 that
// the file must have, in hex; empty: any.
func Read(path, pin string) (Binary, error) {
	f, err := os.Open(path)
	if err != nil {
		return Binary{}, err // it names the path
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return Binary{}, fmt.Errorf("read plugin: %w", err)
	}
	bin, err := newBinary(path, b)
	if err != nil {
		return Binary{}, err
	}
	if got := hex.EncodeToString(bin.Digest[:]); pin != "" && !strings.EqualFold(pin, got) {
		return Binary{}, fmt.Errorf("plugin %s: its SHA-256 is %s, the config wants %s: see who changed the file, or change sha256", path, got, pin)
	}
	return bin, nil
}

// Embedded is a plugin that comes with the program; path is what it is called in
// errors.
func Embedded(path string, file []byte) (Binary, error) { return newBinary(path, file) }

func newBinary(path string, file []byte) (Binary, error) {
	if len(file) > MaxFile {
		return Binary{}, fmt.Errorf("plugin %s: the file is larger than %d MiB", path, MaxFile>>20)
	}
	bin := Binary{Path: path, Digest: sha256.Sum256(file), Size: len(file), wasm: file}
	if bytes.HasPrefix(file, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(file))
		if err == nil {
			bin.wasm, err = io.ReadAll(io.LimitReader(z, MaxInflated+1))
		}
		if err != nil {
			return Binary{}, fmt.Errorf("plugin %s: inflate: %w", path, err)
		}
		if len(bin.wasm) > MaxInflated {
			return Binary{}, fmt.Errorf("plugin %s: it inflates to more than %d MiB", path, MaxInflated>>20)
		}
	}
	return bin, nil
}
