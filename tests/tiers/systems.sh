#!/usr/bin/env bash
# what: the tar of `make dist`: in Debian 11 (glibc 2.31) it runs a job of each MPI there over two sites, from
#   any directory; made twice in different folders, it has the same bytes. Debian 11 to 14 as four sites,
#   each with its own MPIs, as one world; one MPI over two sites of each; accounts and hosts that are odd;
#   one job over three versions of Slurm; Debian 11 and 14 as a grid that a user at a laptop makes, one of
#   them behind a jump host; from nothing to a job by two commands, timed
# needs: root; the network once; 2.7 GB for roots
# takes: twenty minutes
set -euo pipefail
. "$(dirname "$0")/common.sh"
tools/setup/install.sh systems
made dist
tests/dist/bullseye.sh
rm -rf "$target/systems/tar"
mkdir -p "$target/systems"
cp -r "$target"/dist/causeway-*-linux-x86_64 "$target/systems/tar"
tests/systems/worlds.sh
tests/systems/pairs.sh
tests/systems/odd.sh
tests/systems/slurms.sh
tests/systems/unlike.sh
tests/systems/minute.sh
tests/dist/same_bytes.sh
