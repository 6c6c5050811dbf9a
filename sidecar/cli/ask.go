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

	"mirror/sidecar/config"
)

// askPatience is how long a mirror may take to answer.
const askPatience = time.Minute

// addressFlag names the admin server of a mirror that runs.
func addressFlag() cli.Flag {
	return &cli.StringFlag{Name: "address", Usage: "`HOST:PORT` of the admin server, where it is not the config's"}
}

// askMirror sends a request to the admin server of the mirror that runs at an address.
func askMirror(c *cli.Context, address, method, path string, asJSON bool) (answer []byte, code int, err error) {
	req, err := http.NewRequestWithContext(c.Context, method, "http://"+address+path, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("ask the mirror at %s: %w", address, err)
	}
	if asJSON {
		req.Header.Set("Accept", "application/json")
	}
	client := http.Client{Timeout: askPatience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("no mirror answers at %s: %w; does it run, and with this admin.listen? Give its --address where not", address, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		return nil, 0, fmt.Errorf("the answer of the mirror at %s: %w", address, err)
	}
	return answer, resp.StatusCode, nil
}

// told is an answer that no verb expects, for an error.
func told(code int, answer []byte) string {
	return fmt.Sprintf("%d %s: %s", code, http.StatusText(code), strings.TrimSpace(string(answer)))
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
