#!/bin/sh
# Builds sparse.wasm, or the file that is named, with clang (Debian: clang-14 and lld-14).
set -eu
out=$(realpath "${1:-$(dirname "$0")/sparse.wasm}")
cd "$(dirname "$0")"
"${CLANG:-clang-14}" --target=wasm32 -std=c17 -nostdlib -O2 -Wall -Wextra -Werror -Wl,--no-entry,--strip-all -o "$out" sparse.c
