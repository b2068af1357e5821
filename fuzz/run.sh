#!/bin/bash
# Runs fuzz targets one after the other, each for SECONDS of processor time (a busy host only takes longer),
# on one core: run.sh SECONDS [TARGET...]
# What was learnt stays in target/fuzz/TARGET/corpus; an input that failed is in target/fuzz/TARGET/failed,
# and the command to run it again is printed. Targets in C (tests/libraries/world) are named world_...
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
shift
target=${CARGO_TARGET_DIR:-$PWD/target}
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(cargo +nightly fuzz list && printf '%s\n' world_{frames,messages,streams})
build=$target/fuzz-build

# Address checking is off in Rust: what is fuzzed has no unsafe code, and it costs half the speed.
rust=(--sanitizer none --target-dir "$build")

# In C, clang's libFuzzer comes with it. Small sizes let a short input fill a window.
compile() { # target
    local sources=("tests/libraries/world/${1#world_}_fuzz.c")
    case $1 in
        world_messages) sources+=(mpi/world/rendezvous/{rendezvous,message,settings}.c) ;;
        world_frames) sources+=(mpi/world/{engine,frames}/*.c) ;;
        world_streams) sources+=(mpi/world/{engine,frames,streams}/*.c) ;;
        *)
            echo "$1 is no fuzz target" >&2
            exit 2
            ;;
    esac
    clang -std=gnu11 -g -O1 -Wall -Wextra -Werror -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
        -DLIBFUZZER -DCAUSEWAY_SMALL_SIZES -I mpi -include tests/libraries/world/fuzz_kernel.h "${sources[@]}" \
        -o "$build/$1"
}

# Whole seconds of processor time that this script's children have used.
spent() { awk -v hz="$(getconf CLK_TCK)" '{ print int(($16 + $17) / hz) }' /proc/$$/stat; }

mkdir -p "$build"
has_rust=
for name in "${targets[@]}"; do
    case $name in
        world_*) compile "$name" ;;
        *) has_rust=1 ;;
    esac
done
[ -z "$has_rust" ] || cargo +nightly fuzz build "${rust[@]}"

for name in "${targets[@]}"; do
    own=$target/fuzz/$name
    mkdir -p "$own/corpus" "$own/failed"
    case $name in
        scenario) seeds=(scenarios) ;;
        gateway_config | broker_config) seeds=(configs) ;;
        *) seeds=("fuzz/corpus-seeds/$name") ;;
    esac
    case $name in
        # Most of them are programs, which do more the longer they are.
        world_*) command=("$build/$name" -len_control=10) options_after=() ;;
        *) command=(cargo +nightly fuzz run "${rust[@]}" "$name") options_after=(--) ;;
    esac
    # gateway_config puts a key into it.
    export TMPDIR=$own
    start=$(spent) used=0 executions=0
    while [ "$used" -lt "$seconds" ]; do
        # 16 kB: a program of MOST_STEPS steps, a file of every key. 20 s: the slowest input takes 0.1 s on a
        # busy host.
        options=(-max_total_time=$((seconds - used)) -max_len=16384 -timeout=20 -rss_limit_mb=1024 -print_final_stats=1
            -artifact_prefix="$own/failed/")
        if ! "${command[@]}" "$own/corpus" "${seeds[@]}" "${options_after[@]}" "${options[@]}" >"$own/log" 2>&1; then
            tail -n 60 "$own/log"
            echo "$name FAILED; again with: ${command[*]} $own/failed/..." >&2
            exit 1
        fi
        executions=$((executions + $(awk '/stat::number_of_executed_units/ { print $2 }' "$own/log")))
        used=$(($(spent) - start))
    done
    printf '%-16s %12d executions in %d s of processor time\n' "$name" "$executions" "$used"
done
