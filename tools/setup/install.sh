#!/usr/bin/env bash
# install.sh [LIST]: installs the Debian packages of tools/setup/apt-LIST.txt (packages) that are missing;
# does nothing when all are there. Starts no service: packages that would start a daemon are told not to.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
list=${1:-packages}

missing=()
while read -r package _; do
    case $package in '' | '#'*) continue ;; esac
    # The status line, not the exit code: a removed package with its configuration left is known to dpkg too.
    status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
    [ "$status" = "install ok installed" ] || missing+=("$package")
done <"$here/apt-$list.txt"

if ! command -v cargo >/dev/null; then
    echo "setup: cargo is not in PATH; install Rust 1.95 or newer (https://rustup.rs), then repeat" >&2
    exit 1
fi
if [ ${#missing[@]} -eq 0 ]; then
    echo "setup: every Debian package of apt-$list.txt is there"
    exit 0
fi
echo "setup: installing ${missing[*]}"

if ! command -v apt-get >/dev/null; then
    echo "setup: this is no Debian; install by hand what gives the same as: ${missing[*]}" >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "setup: neither root nor sudo; ask an administrator for: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
    # Asks for the password here, where the terminal is, and not inside a step whose output goes to a file.
    sudo -v || { echo "setup: sudo refused; ask an administrator for: apt-get install ${missing[*]}" >&2; exit 1; }
fi

# A policy file is Debian's way to install a server package without starting its service. One that is
# already there is the administrator's and stays.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
apt_environment=(env DEBIAN_FRONTEND=noninteractive)
install=("${as_root[@]}" "${apt_environment[@]}" apt-get install -y --no-install-recommends "${missing[@]}")
# A fresh machine has no package lists, an old one stale ones: fetch them only when the first try says so.
if ! "$here/progress" apt-install "${install[@]}" 2>/dev/null; then
    "$here/progress" apt-update "${as_root[@]}" apt-get update
    "$here/progress" apt-install "${install[@]}"
fi
