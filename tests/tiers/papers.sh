#!/usr/bin/env bash
# what: the papers in short: `causeway bench` with both of Debian's MPIs over two sites, and `causeway
#   report`; NPB=DIR adds two NAS Parallel Benchmarks
# needs: root, or user namespaces
# takes: two minutes; part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build
rm -rf "$target/papers-quick"
tools/papers/papers.py --quick ${NPB:+--npb "$NPB"} --causeway "$target/release/causeway"
