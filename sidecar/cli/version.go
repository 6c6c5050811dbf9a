package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "say which build this is",
		Description: `Examples:

   mirror version
   mirror version -o json`,
		Flags:  []cli.Flag{outputFlag()},
		Action: version,
	}
}

// buildInfo is the answer of version. Its JSON is a contract.
type buildInfo struct {
	Version  string `json:"version"`            // of the module, "(devel)" for a build of a checkout without a tag
	Commit   string `json:"commit,omitempty"`   // "" when built outside of a checkout
	Time     string `json:"time,omitempty"`     // of the commit, RFC 3339
	Modified bool   `json:"modified,omitempty"` // the checkout had changes of its own
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// build is what the Go toolchain noted in the binary.
func build() buildInfo {
	b := buildInfo{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func version(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	asJSON, err := wantsJSON(c)
	if err != nil {
		return err
	}
	b := build()
	if asJSON {
		e := json.NewEncoder(c.App.Writer)
		e.SetIndent("", "  ")
		return e.Encode(b)
	}
	text := "mirror " + b.Version
	if b.Commit != "" {
		text += ", commit " + b.Commit
		if b.Modified {
			text += " with changes"
		}
		text += " of " + b.Time
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s, %s, %s\n", text, b.Go, b.Platform)
	return err
}
