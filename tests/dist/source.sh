#!/usr/bin/env bash
# source.sh: EasyBuild builds and installs the tar of `make source` without a network, the module that it
# makes is loaded, a job runs over two sites, and all lies in one directory. rattler-build renders the conda
# recipe. Needs root, or user namespaces.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
dist=$(realpath "${CARGO_TARGET_DIR:-$root/target}")/dist
recipes=$dist/recipes
tools=$root/.cache/mpi/recipes/bin
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

"$tools/python" - "$recipes/conda/recipe.yaml" <<'END'
import pathlib, sys
from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

linux = dict.fromkeys(("target_platform", "build_platform", "host_platform"), "linux-64")
variants = VariantConfig.from_yaml("{c_compiler: [gcc], c_stdlib: [sysroot], rust_compiler: [rust]}")
recipe = Stage0Recipe.from_yaml(pathlib.Path(sys.argv[1]).read_text())
for rendered in recipe.render(variants, RenderConfig(platform=PlatformConfig(**linux))):
    print("rattler-build:", rendered.recipe)
END
"$tools/python" -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$recipes/spack/package.py"

# Beside what is asked for, nothing comes from this user's directories, and nothing is put there.
mkdir "$place/home"
export RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup} CARGO_HOME=$place/home/.cargo
unset CARGO_TARGET_DIR
LMOD_CMD=$(find /usr/share/lmod -path '*/libexec/lmod' -print -quit)
export LMOD_CMD
HOME=$place/home PATH=$tools:$PATH tools/setup/progress easybuild unshare --map-root-user --net \
    "$tools/eb" "$recipes"/causeway-*.eb --sourcepath="$dist" --prefix="$place/easybuild" --modules-tool=Lmod \
    --filter-deps=Rust --allow-use-as-root-and-accept-consequences --parallel=2

(
    eval "$("$LMOD_CMD" bash use "$place/easybuild/modules/all")"
    eval "$("$LMOD_CMD" bash load causeway)"
    if [[ $(command -v causeway) != "$place/easybuild/software/"* ]]; then
        echo "source.sh: module load causeway gives: $(command -v causeway)" >&2
        exit 1
    fi
    causeway --version
    mpicc.openmpi -O2 -o "$place/alltoall" tests/programs/alltoall.c
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    causeway lab run scenarios/rennes-nancy.toml -- causeway run -- mpirun.openmpi -n 4 "$place/alltoall"
)
found=$(find "$place/home" -type f ! -path '*/.cargo/*')
if [ -n "$found" ]; then
    echo "source.sh: the build leaves in the user's home: $found" >&2
    exit 1
fi
echo "source.sh: all right"
