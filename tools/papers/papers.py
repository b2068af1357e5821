#!/usr/bin/env python3
"""Measures what the tables and figures of the four papers show, on an emulated grid, and sets it
beside what they published.

`papers.py [--quick|--second] [--npb DIR|TAR] [--causeway FILE]` runs `causeway bench` in
target/papers, and the applications of one paper by scripts of their own. It goes on where an
earlier run stopped. It writes the rows and the index, which it computes from them, to
results/papers, and a report to target/papers. With --quick it measures one run of little, and
writes all beside what it measured. With --second it measures one run of everything but counts in
target/papers-second, and writes their rows to results/papers/second: the page says how these agree
with the first ones. items.py says what each paper shows and where its figure comes from. `--index`
measures nothing, and writes the index of the rows that are there; `--check` has status 1 where it
is another one."""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import counts
import items
import rows

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results/papers"
SECOND = RESULTS / "second"

# Both of Debian's MPIs: those that `make setup` installs.
MPIS = ["--mpi", "mpirun.openmpi", "--mpi", "mpirun.mpich"]
ALL_WAYS = ["--ways", "site,direct,causeway", "--settings", "default,tuned"]
BETWEEN = ["--ways", "direct,causeway"]
# The papers' MPIs are as they come.
AS_IT_COMES = ["--ways", "direct", "--settings", "default"]
TWO = ["--lab", "rennes-nancy"]
THREE = ["--lab", "orsay-rennes-bordeaux", "--sizes", "1,4M", "--seconds", "1"]
# Short ones differ little from run to run, and stop once their interval is narrow.
SHORT = ["--least", "2", "--most", "3"]
RUNS = ["--least", "5", "--most", "5"]
# What the machine carries in an hour: BT and SP of class A take a minute a run.
SMALL = ["--benchmarks", "ep,lu,bt,sp", "--class", "W"]
LARGE = ["--benchmarks", "is,cg,mg,ft", "--class", "A"]

# Those of vinter-2004.
PALLAS = "pingpong,pingping,sendrecv,exchange,allreduce,reduce,reduce_scatter,allgather,allgatherv,alltoall,bcast,barrier"
ALL_OPERATIONS = ["--operations", PALLAS, "--sizes", "0,8,64k,4M", "--seconds", "0.3", *RUNS]
# A gather of 4 MB a rank, which MPICH is given in this many pieces, of 256 kB at most.
GATHER = ["operations", *TWO, "--mpi", "mpirun.mpich", "--ways", "causeway", "--operations", "gather", "--sizes", "4M",
          "--count", "10", *RUNS]
PIECES = {f"gather-{count}": {"CAUSEWAY_COLLECTIVES_SEGMENT_BYTES": str((4 << 20) // count)}
          for count in (16, 32, 64, 128, 256)}
# With and without slow start after a pause, see `without_slow_start`.
# Three MPIs within one cluster, each as it comes, a rank on each of two nodes: with more than one a
# core, MPICH's ranks, which wait busily, would keep each other from running. `make setup` does not
# install two of these MPIs.
CACHE = ROOT / ".cache/mpi"
THREE_MPIS = ["--mpi", "mpirun.openmpi", "--mpi", str(CACHE / "mpich/bin/mpirun"), "--mpi", str(CACHE / "intel/bin/mpirun")]
CLUSTER = [*TWO, "--ways", "site", "--settings", "default", "--ranks", "1"]
# A square number of ranks is more than one a core: BT and SP are left out.
KERNELS = ["--benchmarks", "is,cg,mg,ft", "--class", "A"]
PAUSES = ["--mpi", "mpirun.openmpi", "--benchmarks", "bt,cg,lu,mg,sp", "--class", "W", *RUNS]

# Names and arguments of `causeway bench`; "npb" in front is left out without sources.
EXPERIMENTS = {
    "tcp": ["tcp", *TWO, *SHORT, "--ways", "site,direct,causeway", "--seconds", "1",
            "--sizes", "1,1k,64k,256k,1M,4M,16M,64M"],
    "orsay-rennes": ["tcp", *THREE, *SHORT, *BETWEEN, "--sites", "orsay,rennes"],
    "orsay-bordeaux": ["tcp", *THREE, *SHORT, *BETWEEN, "--sites", "orsay,bordeaux"],
    "relay": ["tcp", "--lab", "closed", *SHORT, "--ways", "causeway", "--sites", "rennes,nancy",
              "--sizes", "1,4M", "--seconds", "1"],
    **{name: GATHER for name in PIECES},
    "npb-large": ["npb", *TWO, *MPIS, *LARGE, "--ways", "site,direct,causeway", *RUNS],
    "npb-small": ["npb", *TWO, *MPIS, *SMALL, "--ways", "site,direct,causeway", *RUNS],
    "npb-large-default": ["npb", *TWO, *MPIS, *LARGE, *AS_IT_COMES, *RUNS],
    "npb-small-default": ["npb", *TWO, *MPIS, *SMALL, *AS_IT_COMES, *RUNS],
    "npb-slow-start": ["npb", *TWO, *PAUSES, *BETWEEN],
    "npb-no-slow-start": ["npb", "--lab", "{without_slow_start}", *PAUSES, "--ways", "direct"],
    "pingpong": ["pingpong", *TWO, *SHORT, *MPIS, *ALL_WAYS, "--seconds", "1",
                 "--sizes", "1,1k,64k,256k,1M,4M,32M"],
    "operations": ["operations", *TWO, *MPIS, *BETWEEN, *ALL_OPERATIONS],
    "operations-default": ["operations", *TWO, *MPIS, *AS_IT_COMES, *ALL_OPERATIONS],
    "cluster": ["operations", *CLUSTER, *THREE_MPIS, "--operations", ",".join(PALLAS.split(",")[:-1]), "--sizes", "0,8,64k,4M",
                "--seconds", "0.3", *RUNS],
    "cluster-large": ["npb", *CLUSTER, *MPIS, *KERNELS, *RUNS],
    "cluster-small": ["npb", *CLUSTER, *MPIS, "--benchmarks", "ep,lu", "--class", "W", *RUNS],
    "sizes": ["pingpong", *TWO, *THREE_MPIS, "--mpi", str(CACHE / "openmpi/bin/mpirun"), *ALL_WAYS, "--seconds", "1",
              "--sizes", "1,1k,64k,1M,4M,16M,64M", *SHORT],
    "npb-busy": ["npb", *TWO, "--mpi", "mpirun.openmpi", "--benchmarks", "lu,mg,bt,sp",
                 "--class", "W", *BETWEEN, "--traffic", "busy", *RUNS, "--time-limit", "300"],
}
ONCE = ["--least", "1", "--most", "1"]
QUICK = {
    "tcp": ["tcp", *TWO, *ONCE, "--ways", "site,direct,causeway", "--count", "5", "--sizes", "1,64k,1M"],
    "pingpong": ["pingpong", *TWO, *ONCE, *MPIS, *ALL_WAYS, "--count", "5", "--sizes", "1,64k,1M"],
    "operations": ["operations", *TWO, *ONCE, *MPIS, *BETWEEN, "--count", "5", "--sizes", "0,8,64k",
                   "--operations", "pingpong,sendrecv,bcast,reduce,allreduce"],
    "operations-default": ["operations", *TWO, *ONCE, *MPIS, *AS_IT_COMES, "--count", "5", "--sizes", "0,8,64k",
                           "--operations", "pingpong,sendrecv,bcast,reduce,allreduce"],
    "npb-large": ["npb", *TWO, *ONCE, *MPIS, "--benchmarks", "is,cg", "--class", "S",
                  "--ways", "site,direct,causeway"],
}

# The applications of coti-2011, and its techniques of connecting sites: for each set of words a
# script that adds a line a run to a CSV file. {programs} is the folder of the built examples,
# {rows} that file.
RAYS = ["lab", "run", "orsay-rennes-bordeaux", "--", ROOT / "results/ray2mesh/curve.py",
        "{programs}/ray2mesh/ray2mesh", "{rows}"]
TSQR = [ROOT / "results/tsqr/measure.sh", "{programs}/tsqr", "{rows}"]
APPLICATIONS = {
    "ray2mesh": [[*RAYS, sites, "2", "{runs}"] for sites in "123"],
    "tsqr": [[*TSQR, "{runs}", "100000 1000000"]],
    "techniques": [[ROOT / "tools/papers/techniques.py", "{rows}", "{runs}"]],
}
# What `make` builds of those that are examples.
TARGETS = {"ray2mesh": ["all"], "tsqr": ["all", "scalapack"]}
QUICK_APPLICATIONS = {
    "ray2mesh": [[*RAYS, "2", "1", "{runs}"]],
    "tsqr": [[*TSQR, "{runs}", "100000"]],
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--second", action="store_true")
    parser.add_argument("--index", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--npb", type=pathlib.Path)
    parser.add_argument("--causeway", type=pathlib.Path, default=ROOT / "target/release/causeway")
    return parser.parse_args()


def measure(name: str, words: list[str], out: pathlib.Path, options: argparse.Namespace) -> bool:
    """Runs one experiment; false where it is left out."""
    if words[0] == "npb":
        if options.npb is None:
            print(f"papers: {name}: left out: NPB=DIR names the sources of the NAS Parallel Benchmarks", flush=True)
            return False
        words = [*words, "--source", str(options.npb.resolve())]
    words = [word.format(without_slow_start=out / "without-slow-start.toml") for word in words]
    print(f"papers: {name}", flush=True)
    command = [options.causeway, "bench", words[0], "--out", out / name, *words[1:]]
    environment = os.environ | PIECES.get(name, {})
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False, env=environment)
    # 1: a cell has no value. Its reason stands in the report.
    if done.returncode not in (0, 1):
        sys.exit(f"papers: {name} ended with {done.returncode}")
    return True


def without_slow_start(out: pathlib.Path) -> None:
    """Writes the scenario of two sites whose connections keep their window over a pause."""
    text = (ROOT / "scenarios/rennes-nancy.toml").read_text(encoding="utf-8")
    changed = text.replace("routed = false\n", "routed = false\nslow_start_after_idle = false\n")
    (out / "without-slow-start.toml").write_text(changed, encoding="utf-8")


def applications(out: pathlib.Path, options: argparse.Namespace) -> None:
    """Measures both applications. A file that is there is whole."""
    programs = out / "programs"
    placements = "orsay=1 orsay=1,bordeaux=1 orsay=1,bordeaux=1,sophia=1,toulouse=1"
    environment = os.environ | {"CAUSEWAY": str(options.causeway.resolve()), "PLACEMENTS": placements}
    for name, commands in (QUICK_APPLICATIONS if options.quick else APPLICATIONS).items():
        whole, part = out / f"{name}.csv", out / f"{name}.part.csv"
        if not whole.exists():
            print(f"papers: {name}", flush=True)
            part.unlink(missing_ok=True)
            if name in TARGETS:
                build = ["make", "-s", "-C", ROOT / "examples" / name, "MPICC=mpicc.openmpi"]
                subprocess.run([*build, f"OUT={programs / name}", *TARGETS[name]], check=True)
            for words in commands:
                runs = 1 if options.quick or options.second else 5
                words = [str(word).format(programs=programs, rows=part, runs=runs) for word in words]
                first = [options.causeway] if words[0] == "lab" else []
                subprocess.run([*first, *words], check=True, env=environment, stdout=subprocess.DEVNULL)
            part.rename(whole)


def in_one_run() -> dict[str, list[str]]:
    """All experiments with one run of each cell."""
    def shorter(words: list[str]) -> list[str]:
        return ["1" if before in ("--least", "--most") else word for before, word in zip(["", *words], words)]
    return {name: shorter(words) for name, words in EXPERIMENTS.items()}


def keep(names: list[str], out: pathlib.Path, where: pathlib.Path) -> None:
    """Copies the rows of these experiments."""
    where.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy(out / f"{name}.csv" if name in APPLICATIONS else out / name / "rows.csv", where / f"{name}.csv")


def found_in(where: pathlib.Path) -> dict:
    """What the rows of all experiments bear that are there, in the order of EXPERIMENTS."""
    found = {}
    for name in (*EXPERIMENTS, *APPLICATIONS):
        file = where / f"{name}.csv"
        if file.exists():
            found[name] = rows.read(file) if name in APPLICATIONS else rows.summary(rows.read(file))
    messages = where / "messages.json"
    if messages.exists():
        found["messages"] = json.loads(messages.read_text(encoding="utf-8"))
    if (where / "host.txt").exists():
        found["host"] = (where / "host.txt").read_text(encoding="utf-8").strip()
    return found


def host_of(out: pathlib.Path, name: str) -> str:
    """The machine that an experiment was measured on, and when."""
    host = dict(json.loads((out / name / "plan.json").read_text(encoding="utf-8"))["host"])
    facts = (f"{host[key]}" for key in ("processor", "cores", "kernel", "date (UTC)") if key in host)
    return ", ".join(facts).replace("\n", " ")


def again(is_check: bool) -> int:
    """Computes the index of the rows in results/papers: 1 where --check finds another."""
    page = RESULTS / "README.md"
    text = page.read_text(encoding="utf-8")
    host = re.search(r"^Host: (.*)\.$", text, re.MULTILINE)
    commit = re.search(r"^- commit: (.*)$", text, re.MULTILINE)
    later = re.search(r"^Measured later: (.*?)\.$\n\n", text, re.MULTILINE | re.DOTALL)
    known = tuple(" ".join(found[1].split()) if found else "" for found in (commit, host, later))
    computed = items.index(found_in(RESULTS), found_in(SECOND), known, False)
    if not is_check:
        page.write_text(computed, encoding="utf-8")
    elif computed != text:
        for old, new in zip(text.splitlines(), computed.splitlines()):
            if old != new:
                print(f"{page}: is not what the rows say:\n  {old}\n  {new}", file=sys.stderr)
                break
        print(f"{page}: 'tools/papers/papers.py --index' writes it", file=sys.stderr)
        return 1
    return 0


def main() -> int:
    options = arguments()
    if options.index or options.check:
        return again(options.check)
    out = ROOT / "target" / ("papers-quick" if options.quick else "papers-second" if options.second else "papers")
    out.mkdir(parents=True, exist_ok=True)
    without_slow_start(out)
    experiments = (QUICK if options.quick else in_one_run() if options.second else EXPERIMENTS).items()
    applications(out, options)
    benches = [name for name, words in experiments if measure(name, words, out, options)]
    if options.second:
        keep([*benches, *APPLICATIONS], out, SECOND)
        (SECOND / "host.txt").write_text(host_of(out, benches[0]) + "\n", encoding="utf-8")
        return again(False)
    messages = counts.count(benches, out, options)
    where = out if options.quick else RESULTS
    where.mkdir(parents=True, exist_ok=True)
    report = [options.causeway, "report", *(out / name for name in benches), "--out", out / "report.html",
              "--title", "The tables and figures of four papers, measured again"]
    subprocess.run(report, stdout=subprocess.DEVNULL, check=True)
    if messages:
        (where / "messages.json").write_text(json.dumps(messages, indent=1) + "\n", encoding="utf-8")
    keep([*benches, *(name for name in APPLICATIONS if where != out)], out, where)
    repeated = {} if options.quick else found_in(SECOND)
    head = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    known = (f"`{head.stdout.strip()}`", host_of(out, benches[0]), "")
    page = items.index(found_in(where), repeated, known, options.quick)
    (where / "README.md").write_text(page, encoding="utf-8")
    print(f"papers: {where / 'README.md'}, {out / 'report.html'}")
    return 0


sys.exit(main())
