package demo_test

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"mirror/sidecar"
	"mirror/sidecar/config"
	"mirror/sidecar/demo"
)

// wentOn is a summary of a group that has read on both sides.
var wentOn = regexp.MustCompile(`(?m)^Consumer group billing read [1-9][0-9,]* records on primary, failed over, and went on with [1-9][0-9,]* on backup: 0 lost, 0 repeated\.$`)

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
	if !wentOn.MatchString(out.String()) {
		t.Errorf("the group did not fail over:\n%s", out.String())
	}
	if logged.Len() > 0 {
		t.Errorf("a healthy mirror warns of something:\n%s", logged.String())
	}
}
