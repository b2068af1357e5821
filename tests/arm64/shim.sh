#!/usr/bin/env bash
# shim.sh: the shim's own tests in a system of arm64, each in a network of its own. This machine makes the
# namespaces, because an emulator has threads, and the kernel gives such a process no user namespace.
set -euo pipefail
. "$(dirname "$0")/common.sh"
[ -n "${EMULATED:-}" ] || EMULATED=1 exec "$root/tools/setup/emulate.sh" "$0" "$@"
emulated_system arm64 "$arm64_built"
built=$(cargo test --release --target "$arm64_triple" -p causeway-shim --test shim --no-run --message-format=json |
    grep -o '"executable":"[^"]*"' | cut -d '"' -f 4 | tail -n 1)
cargo build --release --target "$arm64_triple" -p causeway-shim
# Not chroot(2): processes below it may make no namespaces, either.
# shellcheck disable=SC2016 # the inner shell expands it
enter=(unshare --mount --net --pid --fork --kill-child --mount-proc="$ARM64_SYSTEM/proc" sh -euc
    'cd "$1" && shift && pivot_root . . && umount -l . && cd "$1" && shift && exec "$@"' enter
    "$ARM64_SYSTEM" "$root/crates/shim")
export PATH=/usr/sbin:/usr/bin:/sbin:/bin RUST_BACKTRACE=0
passed=0 failed=()
while read -r name; do
    if CAUSEWAY_TEST_INSIDE=1 timeout 60 "${enter[@]}" "$built" --exact "$name" >"$target/arm64/shim.log" 2>&1; then
        passed=$((passed + 1))
    else
        failed+=("$name")
        tail -n "${LINES_EACH:-15}" "$target/arm64/shim.log" >&2
    fi
done < <("${enter[@]}" "$built" --list "$@" | sed -n 's/: test$//p')
echo "shim: $passed tests passed on arm64, ${#failed[@]} failed: ${failed[*]}"
[ ${#failed[@]} -eq 0 ]
