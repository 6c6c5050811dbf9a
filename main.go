// Mirror copies topics from one Kafka cluster to another.
package main

import (
	"os"

	"mirror/sidecar/cli"
)

func main() {
	os.Exit(cli.Main(os.Args, os.Stdout, os.Stderr))
}
