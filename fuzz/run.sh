#!/bin/bash
# Runs fuzz targets one after the other, each for SECONDS of processor time (a busy host only takes longer),
# on one core: run.sh SECONDS [TARGET...]
# What was learnt stays in target/fuzz/TARGET/corpus; an input that failed is in target/fuzz/TARGET/failed,
# and the command to run it again is printed.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
shift
target=${CARGO_TARGET_DIR:-$PWD/target}
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(cargo +nightly fuzz list)

# Address checking is off: what is fuzzed has no unsafe code, and it costs half the speed.
fuzz() { cargo +nightly fuzz "$1" --sanitizer none --target-dir "$target/fuzz-build" "${@:2}"; }

# Whole seconds of processor time that this script's children have used.
spent() { awk -v hz="$(getconf CLK_TCK)" '{ print int(($16 + $17) / hz) }' /proc/$$/stat; }

fuzz build
for name in "${targets[@]}"; do
    own=$target/fuzz/$name
    mkdir -p "$own/corpus" "$own/failed"
    case $name in
        scenario) seeds=(scenarios) ;;
        gateway_config | broker_config) seeds=(configs) ;;
        *) seeds=("fuzz/corpus-seeds/$name") ;;
    esac
    # gateway_config puts a key into it.
    export TMPDIR=$own
    start=$(spent) used=0 executions=0
    while [ "$used" -lt "$seconds" ]; do
        # 16 kB: a program of MOST_STEPS steps, a file of every key. 20 s: the slowest input takes 0.1 s on a
        # busy host.
        options=(-max_total_time=$((seconds - used)) -max_len=16384 -timeout=20 -rss_limit_mb=1024 -print_final_stats=1
            -artifact_prefix="$own/failed/")
        if ! fuzz run "$name" "$own/corpus" "${seeds[@]}" -- "${options[@]}" >"$own/log" 2>&1; then
            tail -n 60 "$own/log"
            echo "$name FAILED; again with: cargo +nightly fuzz run --sanitizer none $name $own/failed/..." >&2
            exit 1
        fi
        executions=$((executions + $(awk '/stat::number_of_executed_units/ { print $2 }' "$own/log")))
        used=$(($(spent) - start))
    done
    printf '%-16s %12d executions in %d s of processor time\n' "$name" "$executions" "$used"
done
