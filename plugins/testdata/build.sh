#!/usr/bin/env bash
# Builds guest.wasm from guest.c, with the clang that there is.
set -euo pipefail
cd "$(dirname "$0")"
clang=$(compgen -c clang | grep -xE 'clang(-[0-9]+)?' | sort -Vr | head -n 1)
"$clang" --target=wasm32 -O2 -mbulk-memory -nostdlib -fno-builtin -Wall -Wextra -Wno-unused-parameter \
	-Wl,--no-entry,--strip-all -o guest.wasm guest.c
