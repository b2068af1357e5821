#!/usr/bin/env python3
"""Runs ray2mesh over one, two or three emulated sites in its three forms, in turn, and adds a row
for each run to a CSV file. It runs on a head node of the grid of three sites:

    causeway lab run orsay-rennes-bordeaux -- results/ray2mesh/curve.py PROGRAM ROWS.csv \\
        SITES RANKS_A_SITE RUNS

The forms are those of the paper: `vanilla` has one boss, and collective operations are the MPI's;
`grid` has one boss, and collective operations are Causeway's; `hierarchical` has a boss a site,
too. The files of each run must be those of one rank, byte for byte.
"""

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "examples/ray2mesh/data"
NAMES = ["orsay", "rennes", "bordeaux"]
FORMS = {
    "vanilla": (["--no-collectives"], "flat"),
    "grid": ([], "flat"),
    "hierarchical": ([], "hierarchical"),
}
SAID = re.compile(
    r"exchanged (\d+) messages, (\d+) with other groups.*"
    r"broadcast (\S+) s, rays (\S+) s, exchange (\S+) s, output (\S+) s",
    re.DOTALL,
)
COLUMNS = [
    "sites", "ranks", "form", "run", "broadcast_s", "rays_s", "exchange_s", "output_s",
    "messages", "messages_far", "cores",
]  # fmt: skip
# A run that takes longer has met a fault.
MOST_SECONDS = 50


def command(program, out):
    words = [program, "--model", DATA / "ak135.tvel", "--events", DATA / "events.csv"]
    return [*map(str, words), "--stations", str(DATA / "stations.csv"), "--out", str(out)]


def launcher(sites, ranks_a_site, options):
    words = ["causeway", "run", *options, "--sites"]
    words += [",".join(f"{name}={ranks_a_site}" for name in NAMES[:sites]), "--"]
    return [*words, "mpirun.openmpi", "-n", str(sites * ranks_a_site)]


def count_cores(sites, ranks_a_site):
    """On how many cores the ranks may compute together: all sites have the same ones."""
    words = [*launcher(sites, ranks_a_site, []), shutil.which("causeway"), "bench-part", "cores"]
    said = subprocess.run(words, check=True, capture_output=True, text=True, timeout=MOST_SECONDS).stdout
    return len({core for line in said.splitlines() for core in line.split()[-1].split(",")})


def run(program, sites, ranks_a_site, form, out):
    options, shape = FORMS[form]
    sizes = ",".join([str(ranks_a_site)] * sites)
    # Groups are said, so that messages with other sites are counted where no library tells sites.
    words = launcher(sites, ranks_a_site, options)
    words += ["-x", f"CAUSEWAY_WORKERS_GROUPS={sizes}", "-x", f"CAUSEWAY_WORKERS_SHAPE={shape}"]
    # Ranks share cores.
    words += ["-x", "OMPI_MCA_mpi_yield_when_idle=1", *command(program, out)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=MOST_SECONDS)
    found = SAID.search(done.stderr + done.stdout)
    if done.returncode or not found:
        sys.exit(f"curve.py: {' '.join(words)}: {done.returncode}\n{done.stderr}{done.stdout}")
    messages, far, *seconds = found.groups()
    return [*seconds, messages, far]


def same(one, many):
    names = ["times.csv", "matrix.mtx", "cells.csv"]
    return all((one / name).read_bytes() == (many / name).read_bytes() for name in names)


def main():
    program, rows, sites, ranks_a_site, runs = sys.argv[1:]
    program, sites, ranks_a_site = str(Path(program).resolve()), int(sites), int(ranks_a_site)
    is_new = not Path(rows).exists()
    environment = os.environ | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    # Nodes of the grid share all folders but /tmp.
    (ROOT / "target").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as folder, open(rows, "a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        one, many = Path(folder) / "one", Path(folder) / "many"
        alone = ["mpirun.openmpi", "-n", "1", *command(program, one)]
        subprocess.run(alone, check=True, env=environment, capture_output=True)
        if is_new:
            writer.writerow(COLUMNS)
        cores = count_cores(sites, ranks_a_site)
        for number in range(int(runs)):
            for form in FORMS:
                found = run(program, sites, ranks_a_site, form, many)
                if not same(one, many):
                    sys.exit(f"curve.py: {form}, {sites} sites: the files are not those of one rank")
                writer.writerow([sites, sites * ranks_a_site, form, number, *found, cores])
                file.flush()
                print(sites, sites * ranks_a_site, form, *found, flush=True)


if __name__ == "__main__":
    main()
