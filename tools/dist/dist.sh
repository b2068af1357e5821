#!/usr/bin/env bash
# dist.sh: makes target/dist/causeway-VERSION-linux-x86_64.tar.zst, which runs from any directory of a Linux
# with glibc 2.28 or newer, and the same as .tar.gz, for systems without zstd; with ARCH=aarch64 those for
# arm64, in target/dist-aarch64. Debug symbols are in a tar of their own, and packages.sh makes packages of
# the same files. The bytes depend on the commit, and on the versions of Rust, binutils, gzip and zstd, but
# not on the folder, the user or the time.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
# Debian 10, Ubuntu 18.10, RHEL 8: nothing older has support.
glibc=2.28
arch=${ARCH:-x86_64}
triple=$arch-unknown-linux-gnu
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=causeway-$version-linux-$arch
case $arch in
x86_64) suffix='' binutils='' emulator='' ;;
# Made on an x86-64 machine, as all is.
aarch64) suffix=-aarch64 binutils=aarch64-linux-gnu- emulator='qemu-aarch64-static -L /usr/aarch64-linux-gnu' ;;
*)
    echo "dist: ARCH is \"$arch\"; Causeway is for x86_64 and aarch64, and not for 32 bits" >&2
    exit 2
    ;;
esac
out=${CARGO_TARGET_DIR:-$root/target}/dist$suffix
mkdir -p "$out"
out=$(cd "$out" && pwd)
tree=$out/$name
debug=$out/debug/$name
built=$out/cargo/$triple/release
tools=$root/.cache/mpi/dist
progress=$root/tools/setup/progress

if ! commit=$(git log -1 --format=%ct 2>/dev/null); then
    echo "dist: $root is no clone; the tar is made from a commit, whose time its files get: git clone first" >&2
    exit 1
fi
if [ -z "${UNCOMMITTED:-}" ] && [ -n "$(git status --porcelain)" ]; then
    echo "dist: $root has changes that are in no commit, which the version would not tell:" >&2
    git status --short >&2
    echo "dist: commit them, or say UNCOMMITTED=1 for a tar that you give to nobody" >&2
    exit 1
fi
export SOURCE_DATE_EPOCH=$commit LC_ALL=C TZ=UTC
umask 022
tools/setup/install.sh dist
[ "$arch" = x86_64 ] || tools/setup/arm64.sh
tools/setup/pypi.sh headers dist wheel

# zig stands in for the C compiler, for C of ours and in crates. The paths of its own library and of the
# working directory get into debug symbols, and so do names for them that are the same everywhere.
zig=$("$tools/bin/python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent)')
# What an earlier version of this script left there holds its paths and words, and would be taken.
rm -rf "$out/zig"
mkdir -p "$out/bin"
cat >"$out/bin/zig" <<END
#!/bin/sh
exec 9<"$zig"
PWD=/proc/self/cwd ZIG_LIB_DIR=/proc/self/fd/9/lib exec "$zig/zig" "\$@"
END
cat >"$out/bin/cc" <<END
#!/bin/sh
exec "$out/bin/zig" cc -target $arch-linux-gnu.$glibc "\$@"
END
chmod +x "$out/bin/zig" "$out/bin/cc"
export ZIG_LOCAL_CACHE_DIR=$out/zig ZIG_GLOBAL_CACHE_DIR=$out/zig
# cargo-zigbuild would rather take the zig of a python.
export CARGO_ZIGBUILD_PYTHON_PATH=false CARGO_ZIGBUILD_ZIG_PATH=$out/bin/zig
export CARGO_ZIGBUILD_CACHE_DIR=$out/zigbuild
export PATH=$tools/bin:$PATH
# A linker that somebody has set for the target would be taken in place of zig.
unset "CARGO_TARGET_$(tr a-z- A-Z_ <<<"$triple")_LINKER"
cargo_home=${CARGO_HOME:-$HOME/.cargo}
# What stands for paths of this machine. The last one that fits is used.
prefixes=("$cargo_home=cargo" "$root=causeway" "$out=causeway/target/dist")
from_c=${prefixes[*]/#/-ffile-prefix-map=}
from_rust=$(IFS=$'\x1f' && echo "${prefixes[*]/#/--remap-path-prefix=}")

compile_rust() {
    CARGO_ENCODED_RUSTFLAGS=$from_rust CFLAGS=$from_c CARGO_TARGET_DIR=$out/cargo \
        cargo-zigbuild zigbuild --release --locked -p causeway-cli -p causeway-shim --target "$triple.$glibc"
}

compile_c() {
    CC=$out/bin/cc CFLAGS=$from_c mpi/build.sh "$out/c"
}

# Symbols go into .debug/, where gdb looks for them once both tars are unpacked.
divide() { # file
    local symbols
    symbols=$debug/lib/causeway/.debug/$(basename "$1").debug
    "${binutils}objcopy" --only-keep-debug "$1" "$symbols"
    "${binutils}strip" --strip-unneeded "$1"
    "${binutils}objcopy" --add-gnu-debuglink="$symbols" "$1"
}

programs() {
    local file
    mkdir -p "$tree/bin" "$tree/lib/causeway" "$debug/lib/causeway/.debug"
    # causeway finds its libraries beside its own file, whatever link it was called by.
    ln -s ../lib/causeway/causeway "$tree/bin/causeway"
    cp "$built/causeway" "$built/libcauseway_shim.so" "$out"/c/* "$tree/lib/causeway/"
    for file in "$tree"/lib/causeway/*; do divide "$file"; done
}

pack() { # directory, name of the tar, how hard zstd tries, whether gzip compresses it, too
    local made=("$2.tar.zst") file
    find "$1" -type d -exec chmod 755 {} +
    # GNU's format has no times of access or creation, which pax has.
    tar --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        -C "$(dirname "$1")" -cf "$out/$2.tar.part" "$(basename "$1")"
    # One thread: the bytes may depend on how the work was divided.
    zstd --quiet "-$3" --single-thread --force "$out/$2.tar.part" -o "$out/$2.tar.zst"
    if [ -n "${4:-}" ]; then
        gzip -9 --no-name --stdout "$out/$2.tar.part" >"$out/$2.tar.gz"
        made+=("$2.tar.gz")
    fi
    rm "$out/$2.tar.part"
    for file in "${made[@]}"; do
        (cd "$out" && sha256sum "$file" >"$file.sha256" && ls -l "$file")
    done
}

rm -rf "$tree" "$out/debug" "$out/c"
export -f compile_rust compile_c
export out triple glibc from_c from_rust
"$progress" dist-c bash -euc compile_c
"$progress" dist-rust bash -euc compile_rust
programs
EMULATOR=$emulator tools/dist/documents.sh "$tree" "$version" "$triple" "$("$out/bin/zig" version)"
(cd "$tree" && find . -type f -print0 | sort -z | xargs -0 sha256sum >"$out/sums" && mv "$out/sums" SHA256SUMS)
tools/dist/portable.py --glibc "$glibc" "$tree" "$root" "$out" "$cargo_home"
pack "$tree" "$name" 19 gzip
# A hundred megabytes, which level 19 would take minutes for.
pack "$debug" "$name-debug" 9
tools/dist/packages.sh "$tree" "$version" "$glibc" "$arch"
