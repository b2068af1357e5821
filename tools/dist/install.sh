#!/usr/bin/env bash
# install.sh PREFIX: compiles Causeway with this machine's compilers and installs it in PREFIX, laid out as
# the tar is. This is for package managers that build from the source tar, and for machines that the tar does
# not fit. DESTDIR comes before PREFIX where files are put. The network is needed only where neither the
# source tar nor an earlier build has put crates and headers.
set -euo pipefail
cd "$(dirname "$0")/../.."
prefix=${1:-}
if [[ $prefix != /* ]]; then
    echo "install: PREFIX is \"$prefix\" where an absolute directory must be: make install PREFIX=\$HOME/causeway" >&2
    exit 2
fi
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
triple=$(rustc -vV | sed -n 's/^host: //p')
built=${CARGO_TARGET_DIR:-target}/release
tree=${DESTDIR:-}$prefix

cargo build --release --locked -p causeway-cli -p causeway-shim
mpi/build.sh "$built/mpi"
mkdir -p "$tree/bin" "$tree/lib/causeway"
install -m 755 "$built/causeway" "$built/libcauseway_shim.so" "$built"/mpi/* "$tree/lib/causeway/"
# Debug symbols are five times as much as the rest.
"${STRIP:-strip}" --strip-unneeded "$tree"/lib/causeway/*
# causeway finds its libraries beside its own file, whatever link it was called by.
ln -sfn ../lib/causeway/causeway "$tree/bin/causeway"
tools/dist/documents.sh "$tree" "$version" "$triple"
echo "install: causeway $version is in $tree"
