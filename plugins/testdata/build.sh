#!/usr/bin/env bash
# Builds the tests' guests in C and Rust, with the clang that there is and the rustc that
# has the target wasm32: Debian's, of the packages rustc and libstd-rust-dev-wasm32.
set -euo pipefail
cd "$(dirname "$0")"
clang=$(compgen -c clang | grep -xE 'clang(-[0-9]+)?' | sort -Vr | head -n 1)
for guest in guest nearest syncs; do
	"$clang" --target=wasm32 -O2 -mbulk-memory -nostdlib -fno-builtin -Wall -Wextra -Wno-unused-parameter \
		-Wl,--no-entry,--strip-all -o "$guest.wasm" "$guest.c"
	chmod -x "$guest.wasm"
done
"$clang" --target=wasm32 -O2 -mbulk-memory -nostdlib -fno-builtin -Wall -Wextra -Wno-unused-parameter -DGROUPS \
	-Wl,--no-entry,--strip-all -o groups.wasm guest.c
chmod -x groups.wasm
mv syncs.wasm syncs-c.wasm
"${RUSTC:-/usr/bin/rustc}" --edition 2021 --target wasm32-unknown-unknown -C opt-level=3 -C panic=abort -C strip=symbols -o syncs-rust.wasm syncs.rs
chmod -x syncs-rust.wasm
