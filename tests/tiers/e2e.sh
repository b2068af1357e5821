#!/usr/bin/env bash
# what: release binaries with Debian's Open MPI and MPICH over two and three sites: see below
# needs: root, or user namespaces
# takes: part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
# Tests that mostly wait.
background() {
    e2e accounts:: batch::debian_ boot:: chaos:: creates:: cuts::debian_ endure:: files:: known_paths:: newcomers:: odd:: \
        own_mpi:: punching:: relays:: shells:: statuses:: tune:: ways:: --skip endure::long_
}
foreground() {
    e2e debian_mpich_runs debian_open_mpi_runs debian_mpis_exchange plain_sockets \
        bench:: hostile::debian_mpis_go_on_beside_a_hostile_neighbour launch_lines:: ordinary:: transparent:: \
        --skip endure:: --skip newcomers:: --skip punching:: --skip relays::
}
lanes e2e
