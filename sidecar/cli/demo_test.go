package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestDemo(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := Main([]string{"mirror", "demo", "--for", "1s", "--rate", "2000"}, &stdout, &stderr); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(stdout.String(), "\nAll ") || stderr.Len() > 0 {
		t.Errorf("stdout:\n%s\nstderr:\n%s", stdout.String(), stderr.String())
	}
}

func TestDemoUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"--for -1s", "mirror: --for -1s is negative; give a time such as 10s, or 0 for until Ctrl-C\n"},
		{"--rate 0", "mirror: --rate 0: give 1 record a second or more\n"},
		{"now", "mirror: mirror demo takes no argument \"now\"; see mirror demo --help\n"},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"mirror", "demo"}, strings.Fields(c.args)...)
		if code := Main(args, &stdout, &stderr); code != exitUsage || stderr.String() != c.want {
			t.Errorf("%s: exit code %d, %q, want %q", c.args, code, stderr.String(), c.want)
		}
	}
}
