#!/usr/bin/env bash
# arm64.sh: installs what compiles Causeway for arm64 on another machine, and runs it there by emulation;
# does nothing where all is there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
triple=aarch64-unknown-linux-gnu

"$here/install.sh" arm64
if [ -d "$(rustc --print sysroot)/lib/rustlib/$triple/lib" ]; then
    echo "setup: Rust's library for $triple is there"
elif command -v rustup >/dev/null; then
    "$here/progress" rust-arm64 rustup target add "$triple"
else
    echo "setup: this Rust has no library for $triple; use that of https://rustup.rs, then repeat" >&2
    exit 1
fi
