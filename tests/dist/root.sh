# shellcheck shell=bash disable=SC2016 # apt-get and the shell within the root expand what is in single quotes
# Sourced by tests: a root of an older Debian, made once below .cache, and commands that run within it.
roots=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/.cache/systems

# shellcheck disable=SC2034 # for those who source this
# Debian 11 with both MPIs, a compiler, what a grid is emulated with, and pip.
bullseye=(bullseye openmpi-bin libopenmpi-dev mpich libmpich-dev gcc libc6-dev environment-modules iproute2 nftables
    openssh-client openssh-server procps python3-venv)

# debian_root SUITE PACKAGE...: sets `system` to its root.
debian_root() {
    local mirror packages=${*:2}
    system=$roots/$1
    if [ "$(cat "$system/made-of" 2>/dev/null)" = "$packages" ]; then
        return
    fi
    rm -rf "$system" "$system.part"
    mkdir -p "$roots"
    # The mirror that this machine itself uses.
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' 'Origin: Debian' | head -n 1)
    mmdebstrap --quiet --mode=root --variant=minbase --include="${packages// /,}" "$1" "$system.part" "$mirror"
    rm -rf "$system".part/var/cache/apt/*.bin "$system".part/var/lib/apt/lists/*
    # Last, so that an interrupted root is not taken for a finished one.
    echo "$packages" >"$system.part/made-of"
    mv "$system.part" "$system"
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
