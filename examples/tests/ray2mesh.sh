#!/usr/bin/env bash
# ray2mesh.sh: the library of rays against formulas, itself, and travel times of others, which
# ray2mesh/reference.py wrote.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/target/examples/ray2mesh
source=$root/examples/ray2mesh
mkdir -p "$out"
cc -std=gnu11 -Wall -Wextra -Werror -O2 -g -I"$source/src" "$here/ray2mesh/check.c" "$source"/src/*.c -lm -o "$out/check"
"$out/check" "$source/data" "$here/ray2mesh/reference.csv"
