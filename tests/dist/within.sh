# shellcheck shell=bash disable=SC2016 # the shell within the root expands what is in single quotes
# Sourced by tests: how a command runs in the root of another system, which leaves no mount.

# within ROOT COMMAND...: runs it there. It sees this machine's processes and devices.
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
        exec "$@"' "$@"
}
