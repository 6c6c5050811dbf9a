package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/urfave/cli/v2"

	"mirror/sidecar/admin"
	"mirror/sidecar/config"
)

func reloadCommand() *cli.Command {
	return &cli.Command{
		Name:  "reload",
		Usage: "have a running mirror read its config again",
		Description: `It asks the mirror's admin server, at the config's admin.listen or --address, and
prints what was applied, without a pause, and what needs a restart and is left as
it runs. A config that is not valid changes nothing: every reason is printed, and
the exit code is 1. The mirror also reloads by itself when the file changes, and
at SIGHUP.

Applied live:
   ` + strings.Join(config.LiveKeys(), "\n   ") + `

Examples:

   mirror reload -c mirror.toml
   mirror reload --address 127.0.0.1:9464 -o json
   mirror validate -c mirror.toml && mirror reload -c mirror.toml`,
		Flags: []cli.Flag{
			configFlag(), addressFlag(), outputFlag(),
		},
		Action: askReload,
	}
}

func askReload(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	asJSON, err := wantsJSON(c)
	if err != nil {
		return err
	}
	address, err := adminAddress(c)
	if err != nil {
		return err
	}
	answer, code, err := askMirror(c, address, http.MethodPost, admin.ReloadPath, asJSON)
	if err != nil {
		return err
	}
	switch {
	case code == http.StatusOK, code == http.StatusUnprocessableEntity && asJSON:
		_, err = c.App.Writer.Write(answer)
		if err == nil && code != http.StatusOK {
			err = errors.New("the config is refused, nothing has changed")
		}
		return err
	case code == http.StatusUnprocessableEntity:
		return errors.New(strings.TrimSpace(string(answer)))
	default:
		return fmt.Errorf("the mirror at %s answers %s", address, told(code, answer))
	}
}
