#!/usr/bin/env bash
# emulate.sh COMMAND...: runs it, and for it alone this machine executes programs of arm64, too, in any root.
# Needs root and qemu-user-static. Where the machine does so already, that stays.
set -euo pipefail
registered=/proc/sys/fs/binfmt_misc
if [ "$(uname -m)" = aarch64 ] || [ -e "$registered/qemu-aarch64" ]; then exec "$@"; fi
if [ "$(id -u)" -ne 0 ]; then
    echo "emulate.sh: only root can have this machine execute programs of arm64: sudo $0 ..." >&2
    exit 1
fi
# Linux forgets what was registered with the last mount of this file system, which here is a namespace's own.
# shellcheck disable=SC2016 # the inner shell expands it
exec unshare --mount --propagation private bash -euc '
    registered=$1
    shift
    mount -t binfmt_misc binfmt_misc "$registered"
    # Another command may have registered it meanwhile.
    [ -e "$registered/qemu-aarch64" ] || cat /usr/lib/binfmt.d/qemu-aarch64.conf >"$registered/register"
    exec "$@"' emulate "$registered" "$@"
