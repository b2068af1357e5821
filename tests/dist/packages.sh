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
debian_root "${bullseye[@]}"
tests=$system/srv/tests
rm -rf "$system/srv"
mkdir -p "$tests/packages"
cp "${packages[@]}" "$tests/packages/"
cp -r "$root/tests/programs" "$root/scenarios" "$here/package.sh" "$tests/"
# MPICH asks for the address of its host's name.
echo "127.0.0.1 localhost $(hostname)" >"$system/etc/hosts"

lintian --allow-root --fail-on error "$dist"/causeway_*.deb
python=$root/.cache/mpi/mpich/bin/python
"$python" -m pip --disable-pip-version-check --quiet download --no-deps --dest "$tests/packages" \
    "$(grep '^mpich==' "$root/tools/setup/pypi-mpich.txt")"

# rpm knows nothing of what Debian's dpkg has installed. A stand-in tells it what glibc's files there have, so
# that rpm itself judges whether this is enough.
rpm=(rpm --root "$system" --define '_dbpath /var/lib/rpm' --force-debian)
glibc_for_rpm() {
    local place
    place=$(mktemp -d)
    {
        printf '%s\n' 'Name: glibc' 'Version: 2.31' 'Release: 1' 'Summary: what is there' 'License: LGPL'
        printf '%s\n' "$system"/lib/x86_64-linux-gnu/{libc,libm,libdl,libpthread,ld-linux-x86-64}.so.* |
            /usr/lib/rpm/elfdeps -P | sort -u | sed 's/^/Provides: /'
        printf '%s\n' '%description' '%files'
    } >"$place/glibc.spec"
    rpmbuild --quiet -bb --define "_topdir $place" --define "_rpmdir $place" --define '_rpmfilename glibc.rpm' \
        "$place/glibc.spec" >"$place/log" 2>&1 || { cat "$place/log" >&2 && return 1; }
    "${rpm[@]}" -i "$place/glibc.rpm"
    rm -r "$place"
}

install_rpm() {
    rm -rf "$system/var/lib/rpm"
    glibc_for_rpm
    "${rpm[@]}" -i "$tests"/packages/causeway-*.rpm
    "${rpm[@]}" -V causeway
}

within bash /srv/tests/package.sh deb
within bash /srv/tests/package.sh wheel
within bash /srv/tests/package.sh list >"$tests/before"
install_rpm
within bash /srv/tests/package.sh job mpirun.openmpi
"${rpm[@]}" -e causeway
rm -rf "$system/var/lib/rpm"
within bash /srv/tests/package.sh list | diff "$tests/before" - || {
    echo "packages.sh: rpm -e leaves the difference above" >&2
    exit 1
}
