#!/usr/bin/env bash
# emulate.sh COMMAND...: runs it, and for it alone this machine executes programs of arm64 and s390x, too, in
# any root. Needs root and qemu-user-static. Where the machine executes one of them already, that stays.
set -euo pipefail
registered=/proc/sys/fs/binfmt_misc
missing=()
for machine in aarch64 s390x; do
    if [ "$(uname -m)" != "$machine" ] && [ ! -e "$registered/qemu-$machine" ]; then missing+=("$machine"); fi
done
if [ ${#missing[@]} -eq 0 ]; then exec "$@"; fi
if [ "$(id -u)" -ne 0 ]; then
    echo "emulate.sh: only root can have this machine execute programs of ${missing[*]}: sudo $0 ..." >&2
    exit 1
fi
# Linux forgets what was registered with the last mount of this file system, which here is a namespace's own.
# shellcheck disable=SC2016 # the inner shell expands it
exec unshare --mount --propagation private bash -euc '
    registered=$1 machines=$2
    shift 2
    mount -t binfmt_misc binfmt_misc "$registered"
    for machine in $machines; do
        # Another command may have registered it meanwhile.
        [ -e "$registered/qemu-$machine" ] || cat "/usr/lib/binfmt.d/qemu-$machine.conf" >"$registered/register"
    done
    exec "$@"' emulate "$registered" "${missing[*]}" "$@"
