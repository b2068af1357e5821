#!/usr/bin/env bash
# what: a million random histories of three brokers in virtual time, by the rules that they keep; then real
#   ones, each of them killed, apart, with a lost, old or full disk, added, replaced and expelled
# needs: nothing
# takes: a quarter of an hour; three thousand histories and the rest are part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
made build
cargo test --release --quiet -p causeway-broker --lib -- model:: --include-ignored
cargo test --release --quiet -p causeway-broker --test broker -- several::
cargo test --release --quiet -p causeway-gateway --test gateway -- several::
cargo test --release --quiet -p causeway-cli --test command -- brokers::
