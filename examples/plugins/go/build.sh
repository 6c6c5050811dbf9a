#!/bin/sh
# Builds audit.wasm, or the file that is named, with Go.
set -eu
out=$(realpath "${1:-$(dirname "$0")/audit.wasm}")
cd "$(dirname "$0")"
GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 go build -buildmode=c-shared -trimpath -ldflags='-s -w' -o "$out" .
