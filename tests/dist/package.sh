#!/usr/bin/env bash
# package.sh deb|wheel|list|job: runs within the root of a Debian 11, for packages.sh. `deb` and `wheel`
# install a package, run a job over two sites, remove it and look for what is left. `list` prints all files,
# and `job MPIRUN` runs the job alone.
set -euo pipefail
cd /srv/tests
export HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
place=/opt/venv

# The package managers' own books are not what a package leaves.
list() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /srv -o -path /var/lib/dpkg/status-old \
        -o -path /var/lib/apt -o -path /var/cache/apt -o -path /var/log \) -prune -o "$@" -print | sort
}

quietly() { # command, whose output is of interest only when it fails
    "$@" >/run/said 2>&1 && return
    cat /run/said >&2
    echo "package.sh: failed: $*" >&2
    exit 1
}

job() { # launcher; mpicc is its own
    local said
    said=$(causeway --version)
    echo "$said"
    if [[ $said == *missing* ]]; then
        echo "package.sh: causeway --version misses libraries, see above" >&2
        exit 1
    fi
    "${1/#mpirun/mpicc}" -O2 -o /tmp/alltoall programs/alltoall.c
    causeway lab run scenarios/rennes-nancy.toml -- causeway run -- "$1" -n 4 /tmp/alltoall
}

nothing_is_left() { # name of the way to remove; words for find
    list "${@:2}" | diff /run/before - && return
    echo "package.sh: $1 leaves the difference above" >&2
    exit 1
}

case $1 in
list) list ;;
job) job "$2" ;;
deb)
    list >/run/before
    quietly apt-get install --yes /srv/tests/packages/causeway_*.deb
    job mpirun.openmpi
    quietly apt-get purge --yes causeway
    nothing_is_left "apt-get purge"
    ;;
wheel)
    python3 -m venv "$place"
    pip=("$place/bin/pip" --quiet --disable-pip-version-check)
    "${pip[@]}" install --no-index packages/mpich-*.whl
    # pip itself leaves empty directories.
    list ! -type d >/run/before
    "${pip[@]}" install --no-index packages/causeway_mpi-*.whl
    (PATH=$place/bin:$PATH && job mpirun)
    # A link to the command, as pipx makes one.
    ln -s "$place/bin/causeway" /tmp/linked
    /tmp/linked --version >/dev/null
    "${pip[@]}" uninstall --yes causeway-mpi
    nothing_is_left "pip uninstall" ! -type d
    ;;
esac
