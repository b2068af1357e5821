#!/usr/bin/env bash
# mpi4py-rank.sh DIRECTORY ARGUMENTS...: one rank of mpi4py's tests with the MPI of its site, $SITE_MPI, which
# may be one of an emulated system (tests/emulated.sh).
# What it says goes to DIRECTORY/stderr.SITE.RANK.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
suite=$root/.cache/mpi/suite
libraries=/usr/lib/$(cc -print-multiarch)
case $SITE_MPI in
debian-openmpi) python=(env MPI4PY_MPIABI=openmpi "MPI4PY_LIBMPI=$libraries/libmpi.so.40" "$suite/bin/python") ;;
debian-mpich) python=(env MPI4PY_MPIABI=mpich "LD_LIBRARY_PATH=$root/target/mpi/debian-mpich/lib" "$suite/bin/python") ;;
*-openmpi) python=(env MPI4PY_MPIABI=openmpi "MPI4PY_LIBMPI=$libraries/libmpi.so.40" /opt/mpi4py/bin/python) ;;
*-mpich) python=(env MPI4PY_MPIABI=mpich LD_LIBRARY_PATH=/opt/mpi4py/mpich /opt/mpi4py/bin/python) ;;
*) python=("$root/.cache/mpi/$SITE_MPI/bin/python") ;;
esac
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:?no launcher has set a rank}}}
exec "${python[@]}" "$root/tests/libraries/world/mpi4py_main.py" "$suite/source/test/main.py" -v "${@:2}" \
    2>"$1/stderr.$SITE_NAME.$rank"
