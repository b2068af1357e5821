#!/usr/bin/env bash
# what: the workers library: thousands of whole runs in virtual time, random jobs with Debian's MPIs on 1 to
#   7 ranks against one rank, its example in C, Fortran and Python. ray2mesh: rays against formulas, TauP,
#   cake, ttimes and published travel times; its files on 1 to 5 ranks byte for byte, with each kind of rank
#   killed, and with rubbish in each input; NetCDF and VTK. tsqr: random matrices of four types on 1 to 7
#   ranks against LAPACK and ScaLAPACK's threshold, messages against the tree's edges, mistakes at all ranks,
#   a rank that is killed, the tree over sites in virtual time, its interfaces for Fortran and Python, and
#   ScaLAPACK's messages
# needs: the network once
# takes: three quarters of a minute; part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build
tests/examples/workers.sh
tools/setup/pypi.sh rays
tests/examples/ray2mesh.sh
tests/examples/tsqr.sh
