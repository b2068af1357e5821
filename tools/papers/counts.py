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


def count(found: dict, out: pathlib.Path, options: argparse.Namespace) -> dict:
    """What each benchmark sends, as `messages.json` has it; with --quick those that are built."""
    copy = copy_of(out)
    if "npb-large" not in found or copy is None:
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
    return {"messages": counts}


def amount(size: float) -> str:
    """Three digits of it, in powers of 1000."""
    power = 0
    while size >= 999.5 and power + 1 < len(UNITS):
        size, power = size / 1000, power + 1
    return f"{size:.3g} {UNITS[power]}"


def between(least: int, most: int) -> str:
    """A size, or two."""
    return amount(least) if amount(least) == amount(most) else f"{amount(least)} to {amount(most)}"


def large(groups: list[dict], number: str, size: str) -> list[dict]:
    """Those that are a twentieth of all, by number or by bytes."""
    all_of = {key: sum(group[key] for group in groups) or 1 for key in (number, size)}
    return [group for group in groups if any(group[key] * 20 >= all_of[key] for key in (number, size))]


def program_text(one: dict, is_between: bool) -> str:
    """Messages of one program, and its operations: how many, and of which size."""
    number, size = ("count_between", "bytes_between") if is_between else ("count", "bytes")
    parts = [f"{group[number]} x {between(group['least'], group['most'])}"
             for group in large([group for group in one["messages"] if group[number]], number, size)]
    if not is_between:
        parts += [f"{operation['call'].removeprefix('MPI_')} {operation['calls']} x "
                  f"{between(operation['least'], operation['most'])}"
                  for operation in large(one["operations"], "calls", "bytes")]
    return " + ".join(parts)


def table(is_between: bool) -> Callable[[dict], str | None]:
    """Table II of hablot-2007, or the messages between both sites, Table 2 of hablot-2009."""
    def read(found: dict) -> str | None:
        counts = found.get("messages", {})
        parts = [(name, program_text(one, is_between)) for name, one in counts.items()]
        return "; ".join(f"{name}: {text}" for name, text in parts if text) or None
    return read


def classes(found: dict) -> str | None:
    """How long a message is on average, and how many of them each rank sends."""
    parts = []
    for name, one in found.get("messages", {}).items():
        calls = sum(group["count"] for group in one["messages"])
        calls += sum(operation["calls"] for operation in one["operations"])
        sent = sum(group["bytes"] for group in one["messages"] + one["operations"])
        parts.append(f"{name} {amount(sent / calls)}, {calls / one['ranks']:.0f} a rank")
    return "; ".join(parts) or None
