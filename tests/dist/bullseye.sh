#!/usr/bin/env bash
# bullseye.sh: the tar of `make dist` in Debian 11, whose glibc is 2.31: every program starts and every
# library loads, both of its MPIs run through the library of collectives, and a job runs over an emulated
# grid. Needs root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/root.sh"
if [ "$(id -u)" -ne 0 ]; then
    echo "bullseye.sh: only root can make the root of a system, and enter it: sudo make test T=systems" >&2
    exit 1
fi
shopt -s nullglob
tars=("${CARGO_TARGET_DIR:-$root/target}"/dist/causeway-*-linux-x86_64.tar.zst)
if [ ${#tars[@]} -ne 1 ]; then
    echo "bullseye.sh: ${#tars[@]} tars in target/dist, where one must be: rm -r target/dist; make dist" >&2
    exit 1
fi
debian_root bullseye

# A directory that no build has seen.
place=/srv/some/where
rm -rf "$system/srv"
mkdir -p "$system$place" "$system/srv/tests"
zstd -dc "${tars[0]}" | tar -x -C "$system$place"
# MPICH asks for the address of its host's name.
echo "127.0.0.1 localhost $(hostname)" >"$system/etc/hosts"
cp -r "$root"/tests/libraries/*.[ch] "$root/tests/programs" "$root/scenarios" "$system/srv/tests/"

cat >"$system/srv/tests/run.sh" <<'END'
set -euo pipefail
cd "$1"/causeway-*
here=$PWD
export HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

sha256sum --quiet --check SHA256SUMS
# The module finds its directory, also through a link.
ln -sfn "$here" /srv/link
eval "$(MODULEPATH=/srv/link/share/modulefiles modulecmd bash load causeway)"
if [ "$(command -v causeway)" != "$here/bin/causeway" ]; then
    echo "module load causeway gives: $(command -v causeway)" >&2 && exit 1
fi
causeway --version
said=$(causeway --version)
if [[ $said == *missing* ]]; then exit 1; fi
for library in lib/causeway/*_{shim,ucx,mpi_*,world_*,messages_*}.so; do
    # ld.so complains, and goes on, where it cannot load one.
    complaint=$(LD_PRELOAD=$here/$library /bin/true 2>&1) || complaint+=" status $?"
    if [ -n "$complaint" ]; then echo "$library in /bin/true: $complaint" >&2 && exit 1; fi
done
causeway collectives explain --help >/dev/null

cd /srv/tests
# MPICH 3.4 has not all calls of compare.c.
mpicc.openmpi -O2 -o compare compare.c -lm -ldl
for mpi in openmpi mpich; do mpicc.$mpi -O2 -o alltoall.$mpi programs/alltoall.c; done
lib=$here/lib/causeway
(
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self CAUSEWAY_COLLECTIVES_SITES=a,b
    words=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -x LD_PRELOAD="$lib/libcauseway_mpi_openmpi.so")
    mpirun.openmpi "${words[@]}" -n 2 ./compare 200 1
    mpirun.openmpi "${words[@]}" -n 2 ./alltoall.openmpi
    mpiexec.hydra -genv LD_PRELOAD "$lib/libcauseway_mpi_abi.so:$lib/libcauseway_mpi_mpich.so" -n 2 ./alltoall.mpich
)

# A job over two sites, by each MPI.
for words in "mpirun.openmpi -n 4 ./alltoall.openmpi" "mpiexec.hydra -n 2 ./alltoall.mpich"; do
    causeway lab run scenarios/rennes-nancy.toml -- causeway run -- $words
done
END
within bash /srv/tests/run.sh "$place"
