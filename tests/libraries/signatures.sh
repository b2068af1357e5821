#!/usr/bin/env bash
# signatures.sh: the list of MPI calls' arguments (common/binding/signatures.h) against the headers that the
# libraries are built from, and those of each MPI that is there: Debian's and PyPI's. Each entry of the list
# is compared.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
machine=$("${CC:-cc}" -print-multiarch)
list=$root/mpi/common/binding/signatures.h

while read -r name; do
    grep -qE "\b$name\b" "$here/signatures.c" || { echo "signatures.c compares nothing with $name" >&2 && exit 1; }
done < <(sed -nE 's/^#define SIGNATURE_([A-Za-z_]+).*/\1/p' "$list")

compare() { # header, flags
    [ -e "$1" ] || return 0
    "${CC:-cc}" -std=gnu11 -fsyntax-only -Wall -Wextra -Werror "${@:2}" -I "$root/mpi" -I "$(dirname "$1")" "$here/signatures.c"
    echo "signatures: as in $1"
}
compare "/usr/lib/$machine/openmpi/include/mpi.h"
compare "/usr/include/$machine/mpich/mpi.h"
compare "$root/.cache/mpi/headers/openmpi/mpi.h"
compare "$root/.cache/mpi/headers/mpich/mpi.h"
compare "$root/.cache/mpi/headers/mpich/mpi_abi.h" -DCAUSEWAY_STANDARD_ABI
compare "$root/.cache/mpi/openmpi/include/mpi.h"
compare "$root/.cache/mpi/mpich/include/mpi.h"
compare "$root/.cache/mpi/mpich/include/mpi_abi.h" -DCAUSEWAY_STANDARD_ABI
