#!/usr/bin/env bash
# root.sh SUITE...: makes the roots of these releases of Debian (bullseye, trixie, forky) in .cache/roots,
# with MPIs, sshd and Slurm of their own; does nothing for those that are there. bookworm-arm64 and
# bookworm-s390x are that release for other processors. Each takes one to one and a half minutes, those of
# other processors six, and 0.7 to 1 GB. Sites of the lab have them by `root = "bullseye"`. Needs root.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

# One list for all, so that no test makes a root anew that another one has made. gcc, because test programs
# are compiled with the root's own MPIs.
packages=openmpi-bin,libopenmpi-dev,mpich,libmpich-dev,gcc,libc6-dev,environment-modules,iproute2,nftables
packages+=,openssh-client,openssh-server,procps,python3-venv,munge,slurmctld,slurmd,slurm-client

if [ $# -eq 0 ]; then
    echo "root.sh: of which releases of Debian? For example: tools/setup/root.sh bullseye trixie" >&2
    exit 2
fi
for suite in "$@"; do
    system=$root/.cache/roots/$suite
    if [ "$(cat "$system/made-of" 2>/dev/null)" = "$packages" ]; then
        continue
    fi
    if [ "$(id -u)" -ne 0 ]; then
        echo "root.sh: only root can make the root of a system ($suite): sudo tools/setup/root.sh $suite" >&2
        exit 1
    fi
    "$root/tools/setup/install.sh" systems
    make=(mmdebstrap)
    if [[ $suite == *-* ]]; then
        "$root/tools/setup/install.sh" "${suite#*-}"
        make=("$root/tools/setup/emulate.sh" mmdebstrap --architectures="${suite#*-}")
    fi
    echo "setup: making the root of $suite in $system"
    rm -rf "$system" "$system.part"
    mkdir -p "$(dirname "$system")"
    # The mirror that this machine itself uses.
    # shellcheck disable=SC2016 # apt-get expands what is in single quotes
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' 'Origin: Debian' | sed -n 1p)
    # A mirror's lists of a release that is still in the making may be older than they say they are good for.
    "${make[@]}" --quiet --mode=root --variant=minbase --include="$packages" \
        --aptopt='Acquire::Check-Valid-Until "false"' "${suite%-*}" "$system.part" "$mirror"
    rm -rf "$system".part/var/cache/apt/*.bin "$system".part/var/lib/apt/lists/*
    rm -rf "$system".part/usr/share/{doc,man,locale}
    # Last, so that an interrupted root is not taken for a finished one.
    echo "$packages" >"$system.part/made-of"
    mv "$system.part" "$system"
done
