#!/usr/bin/env bash
# packages.sh: each package of `make dist` in the root of a Debian 11: it is installed, a job runs over an
# emulated grid of two sites, it is removed, and no file is left. The wheel comes with PyPI's MPICH. Needs
# root; the network once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/root.sh"
if [ "$(id -u)" -ne 0 ]; then
    echo "packages.sh: only root can make the root of a system, and enter it: sudo make test T=packages" >&2
    exit 1
fi
shopt -s nullglob
dist=${CARGO_TARGET_DIR:-$root/target}/dist
packages=("$dist"/causeway_*.deb "$dist"/causeway-*.rpm "$dist"/causeway_mpi-*.whl)
if [ ${#packages[@]} -ne 3 ]; then
    echo "packages.sh: ${#packages[@]} packages in $dist, where three must be: rm -r target/dist; make dist" >&2
    exit 1
fi
debian_root bullseye
debian=$system
place=$(mktemp -d)
trap 'umount -R "$place"; rm -r "$place"' EXIT
mount -t tmpfs causeway-packages "$place"

# What is changed in this root stays in memory, and the one below is clean for the next package.
clean_root() { # name
    system=$place/$1/root
    tests=$system/srv/tests
    mkdir -p "$place/$1"/{root,changes,work}
    mount -t overlay -o "lowerdir=$debian,upperdir=$place/$1/changes,workdir=$place/$1/work" overlay "$system"
    rm -rf "$system/srv"
    mkdir -p "$tests/packages"
    # The root has been made smaller by what every system has.
    mkdir -p "$system"/usr/share/{doc,man/man1}
    cp "${packages[@]}" "$tests/packages/"
    cp -r "$root/tests/programs" "$root/scenarios" "$here/package.sh" "$tests/"
    # MPICH asks for the address of its host's name.
    echo "127.0.0.1 localhost $(hostname)" >"$system/etc/hosts"
}

lintian --allow-root --fail-on error "$dist"/causeway_*.deb
python=$root/.cache/mpi/mpich/bin/python
"$python" -m pip --disable-pip-version-check --quiet download --no-deps --dest "$place" \
    "$(grep '^mpich==' "$root/tools/setup/pypi-mpich.txt")"

# rpm knows nothing of what Debian's dpkg has installed. A stand-in tells it what glibc's files there have, so
# that rpm itself judges whether this is enough.
glibc_for_rpm() {
    local build=$place/glibc
    mkdir "$build"
    {
        printf '%s\n' 'Name: glibc' 'Version: 2.31' 'Release: 1' 'Summary: what is there' 'License: LGPL'
        printf '%s\n' "$system"/lib/x86_64-linux-gnu/{libc,libm,libdl,libpthread,ld-linux-x86-64}.so.* |
            /usr/lib/rpm/elfdeps -P | sort -u | sed 's/^/Provides: /'
        printf '%s\n' '%description' '%files'
    } >"$build/glibc.spec"
    rpmbuild --quiet -bb --define "_topdir $build" --define "_rpmdir $build" --define '_rpmfilename glibc.rpm' \
        "$build/glibc.spec" >"$build/log" 2>&1 || { cat "$build/log" >&2 && return 1; }
    "${rpm[@]}" -i "$build/glibc.rpm"
}

# rpm runs outside: a root of Debian has none.
test_rpm() {
    local said rpm=(rpm --root "$system" --define '_dbpath /var/lib/rpm' --force-debian)
    said=$("${rpm[@]}" -i "$tests"/packages/causeway-*.rpm 2>&1) || true
    if [[ $said != *'libc.so.6(GLIBC_2.28)(64bit) is needed'* ]]; then
        echo "packages.sh: without glibc rpm says: $said" >&2
        return 1
    fi
    glibc_for_rpm
    within bash /srv/tests/package.sh list >"$place/before"
    "${rpm[@]}" -i "$tests"/packages/causeway-*.rpm
    "${rpm[@]}" -V causeway
    within bash /srv/tests/package.sh job mpirun.openmpi
    "${rpm[@]}" -e causeway
    within bash /srv/tests/package.sh list | diff "$place/before" - && return
    echo "packages.sh: rpm -e leaves the difference above" >&2
    return 1
}

clean_root deb
within bash /srv/tests/package.sh deb
clean_root wheel
cp "$place"/mpich-*.whl "$tests/packages/"
within bash /srv/tests/package.sh wheel
clean_root rpm
test_rpm
echo "packages.sh: all right"
