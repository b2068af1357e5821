#!/usr/bin/env bash
# what: pure code; two tunnel ends in virtual time; sockets and processes of this host; labs of namespaces,
#   nftables, sshd and the user-space WAN, skipped with a printed reason where there can be none; the check
#   of what a release needs
# needs: nothing; labs need root, or user namespaces
# takes: part of `make test`
set -euo pipefail
. "$(dirname "$0")/common.sh"
tests/dist/portable.sh
# The tests of `causeway run` take the command and its preload libraries from the same directory.
made build
cargo build --release --workspace --examples
cargo test --release --workspace --tests --no-run
# Two cores: tests of gateways, labs, brokers and commands wait more than they compute.
export RUST_TEST_THREADS=4
apart=(causeway-cli causeway-gateway)
background() { cargo test --release --workspace --tests "${apart[@]/#/--exclude=}"; }
foreground() { cargo test --release "${apart[@]/#/--package=}" --tests; }
lanes unit
