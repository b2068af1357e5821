# shellcheck shell=bash disable=SC2016 # apt-get and the shell within the root expand what is in single quotes
# Sourced by tests: a root of an older Debian, and commands that run within it.
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# debian_root SUITE: sets `system` to its root.
debian_root() {
    "$repository/tools/setup/root.sh" "$1"
    system=$repository/.cache/roots/$1
}

# within COMMAND...: runs it in `system`, which sees this machine's processes and devices, and leaves no
# mount.
within() {
    unshare --mount --fork bash -euc '
        mount --make-rprivate /
        mount --bind "$0" "$0"
        cd "$0"
        mount --rbind /dev dev
        mount -t proc proc proc
        mount --rbind /sys sys
        mount -t tmpfs tmpfs tmp
        mount -t tmpfs tmpfs run
        pivot_root . mnt
        umount -l /mnt
        cd /
        exec "$@"' "$system" "$@"
}
