#!/bin/sh
# Builds the plugin, offsetsync.wasm, with Debian's rustc (packages rustc,
# libstd-rust-dev-wasm32 and lld-14), and records beside it which they were and
# the digest of the source. The bytes are the same for the same packages,
# whatever the folder.
#
#   build.sh           builds
#   build.sh --check   fails unless the committed one is what this builds; where the
#                      packages are others, or none, says so and compares nothing
set -eu
cd "$(dirname "$0")"
toolchain=$(dpkg-query -W -f '${Package} ${Version}\n' libstd-rust-dev-wasm32 lld-14 rustc 2>/dev/null) || toolchain=
recorded=$(grep -v '^source ' offsetsync.build) || recorded=

if [ "${1:-}" = --check ] && [ "$toolchain" != "$recorded" ]; then
	printf 'offsetsync.wasm is not compared. It was built with\n%s\nand here is\n%s\n' "$recorded" "${toolchain:-none}"
	exit
fi
[ -n "$toolchain" ] || { echo "install Debian's rustc, libstd-rust-dev-wasm32 and lld-14" >&2; exit 1; }

# From its own folder, so that no path is in the bytes.
out=$(mktemp)
trap 'rm -f "$out"' EXIT
(cd guest && /usr/bin/rustc --edition 2021 --target wasm32-unknown-unknown -D warnings \
	-C opt-level=3 -C lto=fat -C codegen-units=1 -C panic=abort -C strip=symbols \
	-C link-arg=-zstack-size=65536 -o "$out" lib.rs)

if [ "${1:-}" = --check ]; then
	cmp "$out" offsetsync.wasm || { echo "offsetsync.wasm is not what its source builds: just wasm" >&2; exit 1; }
else
	cat "$out" >offsetsync.wasm
	source=$(cat guest/*.rs ../../abi/rust/mirror.rs ../../abi/rust/state.rs | sha256sum | cut -d ' ' -f 1)
	printf '%s\nsource %s\n' "$toolchain" "$source" >offsetsync.build
fi
