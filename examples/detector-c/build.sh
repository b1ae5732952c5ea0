#!/bin/sh
# Builds detector.c to detector-c.wasm beside it. Needs clang and wasm-ld (Debian: clang, lld) and `terrane`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/detector-c.wasm}
module=$(mktemp)
trap 'rm -f "$module"' EXIT
clang --target=wasm32 -std=c11 -Wall -Wextra -Werror -O2 -ffreestanding -nostdlib \
    -Wl,--no-entry -Wl,--strip-all -Wl,-z,stack-size=16384 -o "$module" "$here/detector.c"
"${TERRANE:-terrane}" plugin build "$here" --module "$module" --out "$out"
