#!/bin/sh
# Builds count.wasm, or the file that is named, with AssemblyScript's compiler
# (npm: assemblyscript 0.28).
set -eu
out=$(realpath "${1:-$(dirname "$0")/count.wasm}")
cd "$(dirname "$0")"
"${ASC:-asc}" count.ts --outFile "$out" -O3 --runtime stub --use abort= --exportStart _initialize
