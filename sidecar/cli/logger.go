package cli

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"

	"mirror/sidecar/config"
)

// newLogger logs to w as the config says.
func newLogger(c config.Log, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level}
	if c.Format == "text" || c.Format == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
