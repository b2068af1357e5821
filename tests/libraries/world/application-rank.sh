#!/usr/bin/env bash
# application-rank.sh KIND ...: one rank of an application of Debian, in its form for the MPI of its site,
# $SITE_MPI: `scalapack DATA PROGRAM`, a tester of ScaLAPACK in the directory of its data; `tachyon SCENE
# IMAGE`, the ray tracer; `mpy PARALLEL SERIAL`, Yorick with a file for all ranks and one for the first.
set -euo pipefail
case $SITE_MPI in
debian-openmpi) flavour=openmpi yorick=openmpi ;;
debian-mpich) flavour=mpich yorick=mpich2 ;;
esac
libraries=/usr/lib/$(cc -print-multiarch)
# Ranks are as many as cores, or more.
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
case $1 in
scalapack)
    cd "$2"
    exec "$libraries/scalapack/$flavour-tests/$3"
    ;;
tachyon)
    # One program for all MPIs looks for a library of this name; it may be of either MPI.
    own=$(mktemp -d)
    ln -s "$libraries/libtachyon-$flavour.so.0" "$own/libtachyon.so.0"
    LD_LIBRARY_PATH=$own tachyon-nox "$2" -res 512 512 -format PPM -o "$3"
    rm -r "$own"
    ;;
mpy) exec "mpy.$yorick" -j "$2" -i "$3" ;;
esac
