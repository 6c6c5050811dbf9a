#!/bin/sh
# Builds tail.wasm, or the file that is named, with a rustc that has the target
# wasm32-unknown-unknown (Debian: rustc, libstd-rust-dev-wasm32 and lld-14).
set -eu
out=$(realpath "${1:-$(dirname "$0")/tail.wasm}")
cd "$(dirname "$0")"
rustc=${RUSTC:-/usr/bin/rustc}
"$rustc" --edition 2021 --target wasm32-unknown-unknown -D warnings \
	-C opt-level=3 -C lto=fat -C codegen-units=1 -C panic=abort -C strip=symbols -o "$out" tail.rs
