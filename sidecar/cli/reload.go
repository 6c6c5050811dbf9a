package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

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
			configFlag(),
			&cli.StringFlag{Name: "address", Usage: "`HOST:PORT` of the admin server, where it is not the config's"},
			outputFlag(),
		},
		Action: askReload,
	}
}

// reloadPatience is how long a mirror may take to answer.
const reloadPatience = time.Minute

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
	req, err := http.NewRequestWithContext(c.Context, http.MethodPost, "http://"+address+admin.ReloadPath, nil)
	if err != nil {
		return fmt.Errorf("ask for a reload: %w", err)
	}
	if asJSON {
		req.Header.Set("Accept", "application/json")
	}
	client := http.Client{Timeout: reloadPatience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no mirror answers at %s: %w; does it run, and with this admin.listen? Give its --address where not", address, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("the answer of the mirror at %s: %w", address, err)
	}
	switch {
	case resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusUnprocessableEntity && asJSON:
		_, err = c.App.Writer.Write(answer)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = errors.New("the config is refused, nothing has changed")
		}
		return err
	case resp.StatusCode == http.StatusUnprocessableEntity:
		return errors.New(strings.TrimSpace(string(answer)))
	default:
		return fmt.Errorf("the mirror at %s answers %s: %s", address, resp.Status, strings.TrimSpace(string(answer)))
	}
}

// adminAddress is where the running mirror of the command line answers.
func adminAddress(c *cli.Context) (string, error) {
	if address := c.String("address"); c.IsSet("address") {
		host, port, err := net.SplitHostPort(address)
		n, bad := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || bad != nil || n == 0 {
			return "", usagef("--address %s is not host:port, like 127.0.0.1:9464", address)
		}
		return address, nil
	}
	file := c.String("config")
	listen, err := config.AdminListen(file)
	if err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(listen)
	switch {
	case listen == "":
		return "", fmt.Errorf("%s switches the admin server off: send SIGHUP to the mirror instead", file)
	case err != nil || port == "0":
		return "", fmt.Errorf("%s lets the system choose the admin port: give --address, as the mirror's log says it", file)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() { // listens everywhere: ask here
		host = "localhost"
	}
	return net.JoinHostPort(host, port), nil
}
