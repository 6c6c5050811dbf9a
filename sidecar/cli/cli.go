// Package cli is the command line: one file a verb. It alone handles signals,
// prints to stdout and stderr, and knows exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"mirror/sidecar/config"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 64  // EX_USAGE of sysexits.h
	exitInterrupted = 130 // a second signal; what shells say of SIGINT
)

const description = `A verb's own help has examples: mirror run --help

Exit codes: 0 ok, 1 failed, 64 wrong usage, 130 a second signal cut a stop short.
Data goes to stdout, logs and errors go to stderr.`

// errInterrupted is returned by a verb that a second signal ends at once.
var errInterrupted = errors.New("a second signal: stopped at once, without draining; what was not saved is copied again at the next start")

// usageError is a command line that is not understood.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// Main runs a command line, args[0] being the program, and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	return mainWith(context.Background(), args, stdout, stderr)
}

// mainWith is Main until ctx ends, which stops it as a first signal does.
func mainWith(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	args, err := arrange(app, args)
	if err == nil {
		err = app.RunContext(ctx, args)
	}
	return report(err, stderr)
}

func newApp(stdout, stderr io.Writer) *cli.App {
	return &cli.App{
		Name:            "mirror",
		Usage:           "copy topics from one Kafka cluster to another",
		Description:     description,
		Commands:        commands(),
		Writer:          stdout,
		ErrWriter:       stderr,
		HideVersion:     true,
		HideHelpCommand: true,
		// The library exits the process by itself, unless told otherwise.
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   asUsageError,
		Action:         cli.ShowAppHelp,
	}
}

func commands() []*cli.Command {
	all := []*cli.Command{runCommand(), reloadCommand(), validateCommand(), translateCommand(), lagCommand(), pluginCommand(), demoCommand(), versionCommand()}
	for _, c := range all {
		c.HideHelpCommand = true
		c.OnUsageError = asUsageError
		for _, sub := range c.Subcommands {
			sub.HideHelpCommand = true
			sub.OnUsageError = asUsageError
		}
	}
	return all
}

func asUsageError(_ *cli.Context, err error, _ bool) error { return usagef("%v", err) }

// report says on stderr what went wrong and gives the exit code.
func report(err error, stderr io.Writer) int {
	var usage *usageError
	var file *config.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "mirror: %v\n", err)
		return exitUsage
	case errors.Is(err, errInterrupted):
		fmt.Fprintf(stderr, "mirror: %v\n", err)
		return exitInterrupted
	case errors.As(err, &file): // each of its lines begins with file and line already
		fmt.Fprintln(stderr, err)
		return exitFailed
	default: // several, maybe, one on each line
		fmt.Fprintf(stderr, "mirror: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nmirror: "))
		return exitFailed
	}
}

// configFlag names the config file.
func configFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", Aliases: []string{"c"}, Value: "mirror.toml", Usage: "the config `FILE`", TakesFile: true}
}

// outputFlag chooses between an answer for people and one for programs.
func outputFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "`FORMAT` of the answer: text or json"}
}

// wantsJSON reads the outputFlag.
func wantsJSON(c *cli.Context) (bool, error) {
	switch o := c.String("output"); o {
	case "json":
		return true, nil
	case "text":
		return false, nil
	default:
		return false, usagef("no output %q, %s", o, config.Suggest(o, []string{"text", "json"}))
	}
}
