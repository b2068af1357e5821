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
# Two cores: tests of gateways, labs, brokers and commands wait more than they compute. All lanes name the
# whole workspace: a part of it would be compiled anew, with fewer features.
export RUST_TEST_THREADS=4
apart=(command gateway shim)
mapfile -t others < <(cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
targets = [target for package in json.load(sys.stdin)["packages"] for target in package["targets"]]
names = {target["name"] for target in targets if target["kind"] == ["test"]}
print(*sorted(names - set(sys.argv[1:])), sep="\n")' "${apart[@]}")
background() { cargo test --release --workspace --lib --bins "${others[@]/#/--test=}"; }
foreground() { cargo test --release --workspace "${apart[@]/#/--test=}"; }
lanes unit
