package demo_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"mirror/sidecar"
	"mirror/sidecar/config"
	"mirror/sidecar/demo"
)

// The demo as it is: the real mirror, with every kind of traffic.
func TestRealMirror(t *testing.T) {
	var out, logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
	err := demo.Run(t.Context(), demo.Options{
		Open: func(cfg *config.Config, log *slog.Logger) (demo.Mirror, error) {
			return sidecar.New(cfg, "test", log, nil)
		},
		For: 2 * time.Second, Rate: 5000, CatchUp: 30 * time.Second, Out: &out, Log: log,
	})
	if err != nil || !strings.Contains(out.String(), "\nAll ") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if logged.Len() > 0 {
		t.Errorf("a healthy mirror warns of something:\n%s", logged.String())
	}
}
