#!/usr/bin/env bash
# up.sh: `causeway up` from a host of x86-64 over a site of the same and one of arm64, which this machine
# emulates: each head node gets the programs for its processor. Needs root, and the tar of
# `ARCH=aarch64 make dist`.
set -euo pipefail
. "$(dirname "$0")/common.sh"
[ -n "${EMULATED:-}" ] || EMULATED=1 exec "$root/tools/setup/emulate.sh" "$0" "$@"
place=$target/arm64
causeway=$target/release/causeway
emulated_system arm64 "$arm64_built"
tar=$(echo "$target"/dist-aarch64/causeway-*-linux-aarch64.tar.gz)
mkdir -p "$place"
{
    printf 'name = "arm64-up"\nrouted = false\ncongestion_control = "cubic"\n'
    printf '[[site]]\nname = "north"\nnodes = 1\nslots = 2\nsubnet = "10.1.0.0/24"\n'
    printf '[[site]]\nname = "south"\nnodes = 1\nslots = 2\nsubnet = "10.2.0.0/24"\nroot = "%s"\n' "$ARM64_SYSTEM"
    printf '[[link]]\nbetween = ["north", "south"]\nrtt = "10ms"\nrate = "1Gbit/s"\n'
} >"$place/up.toml"
trap '"$causeway" lab down arm64-up >/dev/null 2>&1 || :' EXIT
"$causeway" lab down arm64-up >/dev/null 2>&1 || :
"$causeway" lab up "$place/up.toml" --no-gateways --name arm64-up
on() { timeout 300 "$causeway" lab exec --lab arm64-up "$1" -- sh -euc "$2"; }
for site in north south; do on $site-head "mkdir /run/home && mount --bind /run/home ~"; done
typed() { on north-head "cd && unset CAUSEWAY_CONTROL && $causeway $* 2>&1"; }
said=$(typed up --yes north=. south=south-head.wan) && status=0 || status=$?
echo "$said"
grep -q 'add its tar, --tar causeway-.*-linux-aarch64.tar.gz' <<<"$said"
[ "$status" != 0 ]
said=$(typed up --yes north=. south=south-head.wan --tar "$tar") && status=0 || status=$?
echo "$said"
has() { grep -qF -- "$1" <<<"$said" || { echo "up.sh: there is no \"$1\" above" >&2 && exit 1; }; }
has "glibc 2.36, aarch64"
has "tunnel to south"
# qemu 7.2 lets no process inherit orphans, which whatever starts a job's processes must.
[ "$status" = 0 ] || has "become the guard of the job's processes: Invalid argument"
[ "$(on south-head 'unset CAUSEWAY_CONTROL; uname -m; ~/.local/bin/causeway status | grep -c "tunnel to north"')" = $'aarch64\n1' ]
typed down --yes
echo "up.sh: all right"
