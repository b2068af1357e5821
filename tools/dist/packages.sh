#!/usr/bin/env bash
# packages.sh TREE VERSION GLIBC ARCH: makes a .deb, an .rpm and a wheel of what `make dist` has in TREE for
# that processor (x86_64 or aarch64), beside it. Nothing is compiled again. SOURCE_DATE_EPOCH is the time
# that their files get. Their bytes depend on TREE, and on the versions of dpkg, rpm, xz and Python.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(cd "$1" && pwd)
version=$2
glibc=$3
arch=$4
# What Debian calls it.
case $arch in
x86_64) debian_arch=amd64 ;;
aarch64) debian_arch=arm64 ;;
esac
out=$(dirname "$tree")
work=$out/packages
packaging=$root/packaging
export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH
umask 022
date=$(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")

fill() { # template: with what stands for versions replaced
    sed "s/@VERSION@/$version/; s/@GLIBC@/$glibc/; s/@GLIBC_@/${glibc/./_}/; s/@DATE@/$date/" "$1" |
        sed "s/@KILOBYTES@/${kilobytes:-}/; s/@ARCH@/$arch/; s/@DEBIAN_ARCH@/$debian_arch/"
}

# All files get the time of the commit, whenever this is run.
set_times() { # directory
    find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

# A root of what both distributions have at the same place. There is no module file: /usr/bin is in PATH.
stage() { # directory
    local usr=$1/usr page unit
    mkdir -p "$usr/share/man" "$usr/lib/systemd/user"
    cp -a "$tree/bin" "$tree/lib" "$tree/include" "$usr/"
    cp -a "$tree"/share/{bash-completion,doc,fish,zsh} "$usr/share/"
    cp -a "$tree/share/man/man1" "$usr/share/man/"
    for page in "$usr"/share/man/man1/*; do gzip -9n "$page"; done
    # Neither distribution wants libraries to be executable.
    chmod a-x "$usr"/lib/causeway/*.so
    # Their heads say how a unit of a tar is installed.
    for unit in "$tree"/share/systemd/user/*.service; do
        sed '1,/^$/d; s|%h/causeway/bin/|/usr/bin/|; s|file:docs/|file:/usr/share/doc/causeway/docs/|' "$unit" \
            >"$usr/lib/systemd/user/$(basename "$unit")"
    done
}

make_deb() {
    local deb=$work/deb kilobytes
    stage "$deb"
    mv "$deb/usr/share/zsh/site-functions" "$deb/usr/share/zsh/vendor-completions"
    cp "$packaging/deb/copyright" "$deb/usr/share/doc/causeway/copyright"
    fill "$packaging/deb/changelog" | gzip -9n >"$deb/usr/share/doc/causeway/changelog.Debian.gz"
    # Debian has the text of this licence once.
    rm "$deb/usr/share/doc/causeway/LICENSE"
    kilobytes=$(du -k --apparent-size -s "$deb/usr" | cut -f 1)
    mkdir "$deb/DEBIAN"
    fill "$packaging/deb/control" >"$deb/DEBIAN/control"
    (cd "$deb" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    set_times "$deb"
    # Debian 10's dpkg knows no zstd. One thread: the bytes may depend on how the work was divided.
    DPKG_DEB_THREADS_MAX=1 dpkg-deb --root-owner-group -Zxz --build "$deb" "$out/causeway_$version-1_$debian_arch.deb" >"$work/deb.log"
}

make_rpm() {
    stage "$work/rpm"
    set_times "$work/rpm"
    rpmbuild --quiet -bb --target "$arch-linux" --define "staged $work/rpm" --define "causeway_version $version" \
        --define "causeway_glibc $glibc" --define "_topdir $work/rpmbuild" --define "_rpmdir $out" \
        --define '_rpmfilename %{name}-%{version}-%{release}.%{arch}.rpm' --buildroot "$work/buildroot" \
        "$packaging/rpm/causeway.spec" >"$work/rpm.log" 2>&1 || {
        cat "$work/rpm.log" >&2
        return 1
    }
}

# Below data/ lies what comes into an environment's own lib, include and share: the layout of the tar.
make_wheel() {
    local wheel=$work/wheel data info
    data=$wheel/causeway_mpi-$version.data
    info=$wheel/causeway_mpi-$version.dist-info
    mkdir -p "$data/data/share" "$data/scripts" "$info/licenses"
    cp -a "$tree/lib" "$tree/include" "$data/data/"
    cp -a "$tree"/share/{bash-completion,doc,fish,man,zsh} "$data/data/share/"
    mv "$data"/data/share/doc/causeway/{LICENSE,third-party-licences.txt} "$info/licenses/"
    cp "$packaging/wheel/causeway" "$data/scripts/"
    for file in METADATA WHEEL; do fill "$packaging/wheel/$file" >"$info/$file"; done
    "$root/.cache/mpi/wheel/bin/python" -m wheel pack --dest-dir "$out" "$wheel" >"$work/wheel.log"
}

rm -rf "$work"
mkdir -p "$work"
make_deb
make_rpm
make_wheel
rm -rf "$work"
(cd "$out" && for package in "causeway_$version"*.deb "causeway-$version"*.rpm "causeway_mpi-$version"*.whl; do
    sha256sum "$package" >"$package.sha256"
    ls -l "$package"
done)
