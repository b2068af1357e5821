#!/usr/bin/env bash
# openpbs.sh [SOURCE]: builds OpenPBS from its source, since Debian has none, and installs it in /opt/pbs with
# its commands in /usr/local/bin. SOURCE is a git repository. Two minutes on two cores; needs root. For the
# scenario `pbs` and tests/tiers.sh batch-pbs.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=${1:-https://github.com/openpbs/openpbs.git}
# 23.06.06 with what has been corrected since.
commit=cd7ab5edaf03dcac2f1cb9e2f42d75eb117d468a
programs=/opt/pbs
built=$programs/causeway-commit

if [ "$(cat "$built" 2>/dev/null)" = "$commit" ]; then
    echo "setup: OpenPBS is in $programs"
    exit
fi
"$here/install.sh" openpbs
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
git init -q "$place"
git -C "$place" fetch -q --depth 1 "$source" "$commit"
git -C "$place" checkout -q FETCH_HEAD
cd "$place"
# Debian's Python: another one that comes first in PATH may be gone tomorrow. The configuration is where a
# node of the emulated grid has a place of its own.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
build() {
    ./autogen.sh && ./configure --prefix="$programs" --with-pbs-conf-file=/run/pbs/pbs.conf CFLAGS=-O1 &&
        make -j"$(nproc)" && make install
}
if ! build >log 2>&1; then
    tail -n 20 log >&2
    echo "setup: OpenPBS was not built" >&2
    exit 1
fi
for command in qsub qstat qselect qdel qalter qmgr qterm pbsnodes; do
    ln -sf "$programs/bin/$command" "/usr/local/bin/$command"
done
echo "$commit" >"$built"
echo "setup: OpenPBS is in $programs"
