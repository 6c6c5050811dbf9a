package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mirror/abi"
	"mirror/plugins"
	"mirror/plugins/offsetsync"
	"mirror/sidecar/config"
)

func pluginCommand() *cli.Command {
	return &cli.Command{
		Name:  "plugin",
		Usage: "look at WASM plugins",
		Description: `Examples:

   mirror plugin inspect plugins/audit.wasm`,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("there is no mirror plugin %s: there is inspect", c.Args().First())
			}
			return cli.ShowSubcommandHelp(c)
		},
		Subcommands: []*cli.Command{{
			Name:      "inspect",
			Usage:     "what a plugin is",
			ArgsUsage: "FILE",
			Description: `Checks a .wasm or .wasm.gz as mirror does when it loads it, compiles it, and prints
its hooks, imports, the version of the contract that it was built for, size, SHA-256,
memory and how long compiling took. None of its hooks is called. FILE may be offset-sync,
the plugin that is built in. The exit code is 1 when mirror would not load the file.

Examples:

   mirror plugin inspect plugins/audit.wasm
   mirror plugin inspect -o json offset-sync`,
			Flags:  []cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "text or json"}},
			Action: inspectPlugin,
		}},
	}
}

// inspected is what is printed of a plugin; its JSON is a contract.
type inspected struct {
	Path           string   `json:"path"`
	SHA256         string   `json:"sha256"`
	Bytes          int      `json:"bytes"`
	ABIMinor       int      `json:"abi_minor"` // that it was built for
	Hooks          []string `json:"hooks"`
	Imports        []string `json:"imports"`
	MemoryBytes    int64    `json:"memory_bytes"` // that it begins with
	CompileSeconds float64  `json:"compile_seconds"`
}

func inspectPlugin(c *cli.Context) error {
	if c.Args().Len() != 1 {
		return usagef("want one FILE")
	}
	output := c.String("output")
	if output != "text" && output != "json" {
		return usagef("the output is text or json, not %q", output)
	}
	bin, err := readPlugin(c.Args().First())
	if err != nil {
		return err
	}
	module, err := plugins.Inspect(bin)
	if err != nil {
		return err
	}
	at := time.Now()
	loaded, err := plugins.Load(c.Context, plugins.Options{Log: slog.New(slog.DiscardHandler)}, []plugins.Spec{{Name: "inspected", Binary: bin, Emit: plugins.Allow{Groups: true}}}) // whatever it exports
	if err != nil {
		return err
	}
	took := time.Since(at)
	defer loaded.Close()
	minors, err := loaded.Minors(c.Context)
	if err != nil {
		return err
	}
	i := inspected{
		Path: bin.Path, SHA256: fmt.Sprintf("%x", bin.Digest), Bytes: bin.Size, ABIMinor: minors[0],
		Hooks: []string{}, Imports: append([]string{}, module.Imports...), MemoryBytes: int64(module.MemoryPages) << 16, CompileSeconds: took.Seconds(),
	}
	for _, h := range module.Hooks {
		i.Hooks = append(i.Hooks, h.Export())
	}
	if output == "json" {
		e := json.NewEncoder(c.App.Writer)
		e.SetIndent("", "  ")
		return e.Encode(i)
	}
	i.print(c.App.Writer)
	return nil
}

func readPlugin(path string) (plugins.Binary, error) {
	if path == config.OffsetSyncPlugin {
		return plugins.Embedded(path, offsetsync.Wasm)
	}
	return plugins.Read(path, "")
}

func (i *inspected) print(w io.Writer) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("plugin", "%s", i.Path)
	line("sha256", "%s", i.SHA256)
	line("size", "%d bytes", i.Bytes)
	line("abi", "%s, minor %d; this mirror takes up to %d", abi.Module, i.ABIMinor, abi.Minor)
	line("hooks", "%s", strings.Join(i.Hooks, ", "))
	line("imports", "%s", strings.Join(i.Imports, ", "))
	line("memory", "%d KiB to begin with", i.MemoryBytes>>10)
	line("compiled", "in %.1f ms", i.CompileSeconds*1000)
}
