#!/usr/bin/env bash
# what: programs that play a hostile member, neighbour or disk: against gateways, processes, the rendezvous
#   and the broker, then against jobs of both MPIs
# needs: root, or user namespaces
# takes: two minutes; each part is in `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made setup build programs
cargo test --quiet -p causeway-gateway --test members --test refusals --test consent --test flood --test certificates
cargo test --quiet -p causeway-broker --test abuse
cargo test --quiet -p causeway-shim --test accept
cargo test --quiet -p causeway-cli --bins rendezvous
e2e hostile::
