package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/urfave/cli/v2"

	"mirror/sidecar/admin"
)

func translateCommand() *cli.Command {
	return &cli.Command{
		Name:      "translate",
		ArgsUsage: "GROUP",
		Usage:     "say where on the target a consumer group would go on, and why",
		Description: `It asks a running mirror, at the config's admin.listen or --address, and prints for
each mirrored partition that the group has an offset of: the offset on the source; the
one on the target, and whether it is exact (who goes on there misses nothing and
repeats nothing), a bound (misses nothing, may repeat some) or not known, and why; the
run of records that it goes by ("1000-1999 at 880": the source's 1000 to 1999 are the
target's 880 to 1879, one by one; it has the record that the group goes on at, or is the
last one that is known before), where the plugin says so; the offset sync that
MirrorMaker would translate by; the checkpoint in the topic and its age; what the group
has on the target; and what sync_groups does about it, or would do. It is how things are
now, and changes nothing. A group that several flows follow is printed for each. The
exit code is 1 where no flow follows such a group.

Examples:

   mirror translate orders-service -c mirror.toml
   mirror translate orders-service --topic orders
   mirror translate orders-service --flow 'primary->backup' --address 127.0.0.1:9464 -o json`,
		Flags: []cli.Flag{
			configFlag(), addressFlag(), flowFlag(), outputFlag(),
			&cli.StringFlag{Name: "topic", Usage: "of this source `TOPIC` only"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 || c.Args().First() == "" {
				return usagef("mirror translate: want one GROUP; see mirror translate --help")
			}
			return askGroups(c, admin.TranslatePath, url.Values{"group": {c.Args().First()}, "topic": {c.String("topic")}, "flow": {c.String("flow")}})
		},
	}
}

func lagCommand() *cli.Command {
	return &cli.Command{
		Name:  "lag",
		Usage: "say what each consumer group would lose or repeat if it failed over now",
		Description: `It asks a running mirror, at the config's admin.listen or --address, and prints for
each group that it follows how many records of the target the group would pass over or
read again if it went on there now: 0 and 0 where its offsets are translated exactly,
and at most so many where they are bounds. It goes on where its group on the target
stands with sync_groups, else where the checkpoints say. Beside that: how many source
offsets it has still to read that are not on the target yet; these are lost if the
source never comes back. It changes nothing.

Examples:

   mirror lag -c mirror.toml
   mirror lag --flow 'primary->backup' --address 127.0.0.1:9464 -o json`,
		Flags: []cli.Flag{configFlag(), addressFlag(), flowFlag(), outputFlag()},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return askGroups(c, admin.LagPath, url.Values{"flow": {c.String("flow")}})
		},
	}
}

func flowFlag() cli.Flag {
	return &cli.StringFlag{Name: "flow", Usage: "of this `FLOW` only, like primary->backup"}
}

// askGroups prints what the running mirror says of groups.
func askGroups(c *cli.Context, path string, query url.Values) error {
	asJSON, err := wantsJSON(c)
	if err != nil {
		return err
	}
	address, err := adminAddress(c)
	if err != nil {
		return err
	}
	answer, code, err := askMirror(c, address, http.MethodGet, path+"?"+query.Encode(), asJSON)
	switch {
	case err != nil:
		return err
	case code == http.StatusOK:
		_, err = c.App.Writer.Write(answer)
		return err
	case code == admin.NothingToSay, code == http.StatusServiceUnavailable:
		return errors.New(strings.TrimSpace(string(answer)))
	default:
		return fmt.Errorf("the mirror at %s answers %s", address, told(code, answer))
	}
}
