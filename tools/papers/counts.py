"""Counts the messages of the NAS Parallel Benchmarks with `causeway bench messages`, at the papers'
scale: class B on 16 ranks. A count is the same on any machine, so two cores carry it."""

import argparse
import json
import os
import pathlib
import subprocess
from typing import Callable

BENCHMARKS = ("ep", "cg", "mg", "lu", "sp", "bt", "is", "ft")
UNITS = ("B", "kB", "MB", "GB")


def copy_of(out: pathlib.Path) -> pathlib.Path | None:
    """The sources that `causeway bench npb` has prepared for Open MPI."""
    found = sorted((out / "npb-large/npb").glob("open-mpi*/**/config/make.def"))
    return found[0].parents[1] if found else None


def count(benches: list[str], out: pathlib.Path, options: argparse.Namespace) -> dict:
    """What each benchmark sends, by its name; with --quick those that are built."""
    copy = copy_of(out)
    if "npb-large" not in benches or copy is None:
        return {}
    class_, ranks, names = ("S", 4, ("is", "cg")) if options.quick else ("B", 16, BENCHMARKS)
    counts = {}
    for name in names:
        program = f"{name}.{class_}.{ranks}"
        kept = out / "messages" / program
        if not (kept / "messages.json").exists():
            print(f"papers: messages of {program}", flush=True)
            build = ["make", "-s", "-C", copy, name, f"CLASS={class_}", f"NPROCS={ranks}"]
            subprocess.run(build, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            command = [options.causeway, "bench", "messages", "--out", kept, "--", "mpirun.openmpi", "--oversubscribe",
                       "-n", str(ranks), copy / "bin" / program]
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        counts[program] = json.loads((kept / "messages.json").read_text(encoding="utf-8"))
    return counts


def amount(size: float) -> str:
    """Three digits of it, in powers of 1000."""
    power = 0
    while size >= 999.5 and power + 1 < len(UNITS):
        size, power = size / 1000, power + 1
    return f"{size:.3g} {UNITS[power]}"


def between(least: int, most: int) -> str:
    """A size, or two."""
    return amount(least) if amount(least) == amount(most) else f"{amount(least)} to {amount(most)}"


def program_text(one: dict, is_between: bool) -> str:
    """Messages of one program, and calls of operations: how many, and of which size. Those that are
    less than a twentieth of all, by number and by bytes, are left out."""
    number, size = ("count_between", "bytes_between") if is_between else ("count", "bytes")
    rows = [(group[number], group[size], between(group["least"], group["most"]), "") for group in one["messages"]]
    if not is_between:
        rows += [(operation["calls"], operation["bytes"], between(operation["least"], operation["most"]),
                  operation["call"].removeprefix("MPI_") + " ") for operation in one["operations"]]
    all_calls, all_bytes = sum(row[0] for row in rows), sum(row[1] for row in rows)
    parts = [f"{call}{count} x {length}" for count, bytes_, length, call in rows
             if count and (count * 20 >= all_calls or bytes_ * 20 >= all_bytes)]
    return " + ".join(parts)


def table(is_between: bool) -> Callable[[dict], str | None]:
    """Table II of hablot-2007, or the messages between both sites, Table 2 of hablot-2009."""
    def read(found: dict) -> str | None:
        counts = found.get("messages", {})
        parts = [(name, program_text(one, is_between)) for name, one in counts.items()]
        return "; ".join(f"{name}: {text}" for name, text in parts if text) or None
    return read


# What of such a call's bytes is for the other half of the ranks.
HALVED = ("MPI_Alltoall", "MPI_Alltoallv")


def volumes(found: dict) -> str | None:
    """Bytes between both sites, Table 2 of hablot-2009. Reductions and the like are few: what
    crosses of them depends on the MPI, and is left out."""
    parts = []
    for name, one in found.get("messages", {}).items():
        crossed = sum(group["bytes_between"] for group in one["messages"])
        crossed += sum(operation["bytes"] / 2 for operation in one["operations"] if operation["call"] in HALVED)
        parts.append(f"{name} {amount(crossed)}")
    return ", ".join(parts) or None


def classes(found: dict) -> str | None:
    """How long a message is on average, how many each rank sends, and the share of operations."""
    parts = []
    for name, one in found.get("messages", {}).items():
        calls = sum(group["count"] for group in one["messages"])
        calls += sum(operation["calls"] for operation in one["operations"])
        sent = sum(group["bytes"] for group in one["messages"] + one["operations"])
        together = sum(operation["bytes"] for operation in one["operations"]) / sent if sent else 0
        parts.append(f"{name} {amount(sent / calls)}, {calls / one['ranks']:.0f} a rank, {together:.0%}")
    return "; ".join(parts) or None
