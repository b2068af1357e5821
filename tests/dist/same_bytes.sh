#!/usr/bin/env bash
# same_bytes.sh: a clone of this commit in another folder makes the same tars and packages as target/dist
# has, byte for byte.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
dist=${CARGO_TARGET_DIR:-$root/target}/dist
elsewhere=$(mktemp -d "${TMPDIR:-/tmp}/causeway-built-in-a-folder-with-a-longer-name.XXXXXX")
trap 'rm -rf "$elsewhere"' EXIT

git clone --quiet "$root" "$elsewhere/clone"
mkdir -p "$elsewhere/clone/.cache/mpi"
# What is downloaded need not be twice. Nothing there has an absolute path that a build sees.
for name in headers dist wheel; do cp -r "$root/.cache/mpi/$name" "$elsewhere/clone/.cache/mpi/"; done
env -u CARGO_TARGET_DIR make --no-print-directory -C "$elsewhere/clone" dist
status=0
for made in "$dist"/*.{tar.zst,tar.gz,deb,rpm,whl}; do
    if cmp "$made" "$elsewhere/clone/target/dist/$(basename "$made")"; then
        echo "same bytes: $(basename "$made")"
    else
        status=1
        # Which files differ says where to look.
        diff -rq "$dist" "$elsewhere/clone/target/dist" | grep -v '^Only' >&2 || true
    fi
done
exit $status
