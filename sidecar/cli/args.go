package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mirror/sidecar/config"
)

// arrange puts a verb's flags before its arguments, for the library ignores
// those that come later without a word; -- ends the flags. It refuses verbs and
// flags that do not exist, with a suggestion.
func arrange(app *cli.App, args []string) ([]string, error) {
	if len(args) < 2 {
		return nil, usagef("which verb? There is %s; see mirror --help", strings.Join(verbs(app), ", "))
	}
	name := args[1]
	if isHelp(name) {
		if len(args) == 2 {
			return []string{args[0], "--help"}, nil
		}
		name, args = args[2], []string{args[0], args[2], "--help"}
	}
	verb := app.Command(name)
	if verb == nil && strings.HasPrefix(name, "-") {
		return nil, usagef("flag %s before a verb: mirror VERB FLAGS, where VERB is one of %s", name, strings.Join(verbs(app), ", "))
	}
	if verb == nil {
		return nil, usagef("no verb %q, %s", name, config.Suggest(name, verbs(app)))
	}
	path := []string{verb.Name}
	if len(args) > 2 {
		if sub := verb.Command(args[2]); sub != nil {
			verb, path = sub, append(path, sub.Name)
		}
	}
	flags, rest := []string{}, []string{}
	for i := 1 + len(path); i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			rest = append(rest, arg)
			continue
		}
		flag, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		takesValue, known := lookup(verb, flag)
		if !known {
			return nil, usagef("mirror %s has no flag %s, %s", strings.Join(path, " "), arg, config.Suggest(flag, names(verb)))
		}
		flags = append(flags, arg)
		if takesValue && !hasValue {
			if i++; i == len(args) {
				return nil, usagef("the flag %s needs a value; see mirror %s --help", arg, strings.Join(path, " "))
			}
			flags = append(flags, args[i])
		}
	}
	return slices.Concat(args[:1], path, flags, []string{"--"}, rest), nil
}

func verbs(app *cli.App) []string {
	var all []string
	for _, c := range app.Commands {
		all = append(all, c.Name)
	}
	return all
}

// names are those of a verb's flags, without short forms.
func names(verb *cli.Command) []string {
	all := []string{"help"}
	for _, f := range verb.Flags {
		all = append(all, f.Names()[0])
	}
	return all
}

func isHelp(arg string) bool {
	return arg == "help" || arg == "--help" || arg == "-help" || arg == "-h"
}

func lookup(verb *cli.Command, name string) (takesValue, known bool) {
	for _, f := range verb.Flags {
		if slices.Contains(f.Names(), name) {
			_, boolean := f.(*cli.BoolFlag)
			return !boolean, true
		}
	}
	return false, isHelp("-" + name)
}

// noArguments refuses arguments of a verb that takes none.
func noArguments(c *cli.Context) error {
	if c.NArg() == 0 {
		return nil
	}
	return usagef("mirror %s takes no argument %q; see mirror %s --help", c.Command.Name, c.Args().First(), c.Command.Name)
}
