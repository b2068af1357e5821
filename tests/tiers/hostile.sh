#!/usr/bin/env bash
# what: programs that play a hostile member, neighbour or disk: against gateways, processes, the rendezvous
#   and the broker, then against jobs of both MPIs
# needs: root, or user namespaces
# takes: two minutes; each part is in `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
cargo test --release --quiet -p causeway-gateway --test gateway -- members:: refusals:: consent:: flood:: certificates::
cargo test --release --quiet -p causeway-broker --test broker -- abuse:: stolen::
cargo test --release --quiet -p causeway-broker --lib -- trust:: client:: exchange::
cargo test --release --quiet -p causeway-shim --test shim -- accept::
cargo test --release --quiet -p causeway-cli --bins -- up::
cargo test --release --quiet -p causeway-run --lib -- files:: spending::
cargo test --release --quiet -p causeway-rendezvous --lib
e2e hostile::
