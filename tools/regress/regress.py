#!/usr/bin/env python3
"""Compares the speed of this checkout with that of another commit: regress.py BASE.

Both are built (BASE in a work tree of its own, target/regress/base), and then take turns, BASE and
HEAD, round after round, for at most 25 minutes. `job.sh` runs the same test programs of this
checkout in emulated grids of either build; what needs no MPI is measured by each build's own
`causeway-measure`. A figure's pairs are tested by the signs of their differences (a permutation
test on logarithms, exact up to 2^12 pairs), and the median of their ratios has an interval. A
figure is named, and the status is 1, if it is worse by more than 2 % with p below 0.01.

    --minutes N     how long to measure (25)
    --rounds N      this many rounds at most
    --npb DIR|TAR   a copy of the NAS Parallel Benchmarks: LU and SP of class S are measured, too
    --out DIR       where the rows go (results/regress)
"""

import argparse
import csv
import itertools
import math
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORSE, SURE = 1.02, 0.01
# Fewer pairs than these cannot be sure: half of 2^-7 is less than 0.01.
FEWEST = 8
# Grids by name, with lines of every gateway's [grid].
GRIDS = {"tls": "", "clear": "insecure = true", "quic": 'transport = "quic"'}
# What `job.sh` writes, and whether more is better.
MORE_IS_BETTER = {"Gbit/s a core", "streams opened a second"}


def run(words: list[str], **more) -> subprocess.CompletedProcess:
    """Runs a command to its end; its output goes where this program's does."""
    return subprocess.run(words, check=True, **more)


def commit(name: str) -> str:
    words = ["git", "rev-parse", "--short=8", f"{name}^{{commit}}"]
    return run(words, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def build(tree: pathlib.Path) -> None:
    """Builds a checkout as `make build` does."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(tree / "target")}
    run(["make", "--no-print-directory", "build"], cwd=tree, env=environment)


def work_tree(base: str) -> pathlib.Path:
    """A work tree of BASE; what an earlier run has built there is built upon."""
    tree = ROOT / "target/regress/base"
    if tree.exists():
        run(["git", "checkout", "--quiet", "--detach", "--force", base], cwd=tree)
    else:
        run(["git", "worktree", "prune"], cwd=ROOT)
        run(["git", "worktree", "add", "--quiet", "--detach", str(tree), base], cwd=ROOT)
    # The same programs for both builds.
    programs = tree / "target/mpi"
    programs.parent.mkdir(exist_ok=True)
    if not programs.exists():
        programs.symlink_to(ROOT / "target/mpi")
    return tree


def in_grids(tree: pathlib.Path, place: pathlib.Path, number: int) -> dict[str, float]:
    """Figures of jobs in emulated grids."""
    found = {}
    path = f"{tree / 'target/release'}:{os.environ['PATH']}"
    for name, lines in GRIDS.items():
        directory = place / name
        directory.mkdir(parents=True)
        shape = ["--grid", lines] if lines else []
        # 64 ranks take ten seconds: every other round.
        many = "many" if name == "tls" and number % 2 == 0 else ""
        run(["causeway", "lab", "run", *shape, "rennes-nancy", "--", str(HERE / "job.sh"), str(ROOT), name, many],
            cwd=directory, env={**os.environ, "PATH": path}, stdout=subprocess.DEVNULL, timeout=300)
        found |= read_steady(directory / "steady.csv", name)
        if name == "tls":
            found |= read_others(directory)
    return found


def read_steady(file: pathlib.Path, grid: str) -> dict[str, float]:
    times: dict[str, list[float]] = {}
    for row in csv.DictReader(file.open()):
        times.setdefault(row["size_bytes"], []).append(float(row["one_way_us"]))
    return {f"{size} B one way, {grid}, us": statistics.median(all_of) for size, all_of in times.items()}


def read_others(directory: pathlib.Path) -> dict[str, float]:
    found = read_steady(directory / "large.csv", "tls")
    for file in sorted(directory.glob("npb-*")):
        if "SUCCESSFUL" not in file.read_text():
            raise SystemExit(f"{file}: the benchmark did not verify its result")
        seconds = re.search(r"Time in seconds\s*=\s*([\d.]+)", file.read_text())
        found[f"NPB {file.name.removeprefix('npb-')}, 2+2 ranks, s"] = float(seconds.group(1))
    for file in sorted(directory.glob("begin-*.csv")):
        row = next(csv.DictReader(file.open()))
        found[f"MPI_Init of {row['ranks']} ranks, s"] = float(row["init_s"])
        found[f"first exchange of {row['ranks']} ranks, s"] = float(row["all_to_all_s"])
    times: dict[tuple, list[float]] = {}
    for row in csv.DictReader((directory / "collectives.csv").open()):
        if row["iteration"] != "loop":
            times.setdefault((row["operation"], row["size_bytes"]), []).append(float(row["seconds"]))
    for (operation, size), all_of in times.items():
        found[f"{operation} of {size} B, 2+2 ranks, ms"] = statistics.median(all_of) * 1e3
    return found


def on_loopback(tree: pathlib.Path, place: pathlib.Path) -> dict[str, float]:
    """Figures of gateways without an emulator, by this build's own measuring program."""
    out = place / "measure"
    run([str(tree / "target/release/causeway-measure"), "bench", "--quick", "--only", "loopback,streams", "--out",
         str(out)], cwd=tree, stdout=subprocess.DEVNULL, timeout=300)
    found = {}
    for row in csv.DictReader((out / "loopback.csv").open()):
        if "nothing" in row["what"] or "copy" in row["what"]:
            continue
        found[f"{row['what']}, loopback, Gbit/s a core"] = int(row["bytes"]) * 8e-9 / float(row["cpu_seconds"])
        found[f"1 B one way, {row['what']}, loopback, us"] = float(row["one_way_us"])
    opened = [row for row in csv.DictReader((out / "streams.csv").open()) if row["way"] == "causeway"]
    if opened:
        found["streams opened a second"] = statistics.median(int(row["streams"]) / float(row["seconds"]) for row in opened)
    # Columns: when, streams open, resident memory, added per stream, all per stream.
    memory = re.findall(r"\|\s*all open\s*\|[^|\n]*\|[^|\n]*\|\s*([\d.]+)\s*\|", (out / "README.md").read_text())
    if memory:
        found["memory of an idle stream, kB"] = statistics.median(map(float, memory))
    return found


def p_value(logarithms: list[float]) -> float:
    """How often random signs give a sum at least as far from 0."""
    total = abs(sum(logarithms)) - 1e-12
    count = len(logarithms)
    if count <= 12:
        signs = itertools.product((1, -1), repeat=count)
    else:
        draws = random.Random(1)
        signs = ([draws.choice((1, -1)) for _ in range(count)] for _ in range(20000))
    sums = [abs(sum(sign * value for sign, value in zip(each, logarithms))) >= total for each in signs]
    return sum(sums) / len(sums)


def interval(values: list[float]) -> tuple[float, float]:
    """The middle 95 of 100 medians of samples drawn with replacement (Efron 1979)."""
    draws = random.Random(1)
    medians = sorted(statistics.median(draws.choices(values, k=len(values))) for _ in range(2000))
    return medians[49], medians[1950]


def is_more_better(figure: str) -> bool:
    return any(figure.endswith(ending) for ending in MORE_IS_BETTER)


def judge(rows: list[dict]) -> tuple[list[str], list[str]]:
    """Lines of the table, and the figures that are worse."""
    lines, worse = [], []
    for figure in dict.fromkeys(row["figure"] for row in rows):
        pairs: dict[str, dict[str, float]] = {}
        for row in rows:
            if row["figure"] == figure:
                pairs.setdefault(row["round"], {})[row["build"]] = float(row["value"])
        both = [pair for pair in pairs.values() if len(pair) == 2]
        ratios = [pair["head"] / pair["base"] for pair in both if pair["base"] > 0 and pair["head"] > 0]
        if not ratios:
            continue
        ratio, (low, high) = statistics.median(ratios), interval(ratios)
        p = p_value([math.log(value) for value in ratios])
        loss = 1 / ratio if is_more_better(figure) else ratio
        verdict = "WORSE" if loss > WORSE and p < SURE else "too few pairs" if len(ratios) < FEWEST else ""
        if verdict == "WORSE":
            worse.append(figure)
        base, head = (statistics.median(pair[build] for pair in both) for build in ("base", "head"))
        lines.append(f"| {figure} | {base:.4g} | {head:.4g} | {ratio:.3f} ({low:.3f} to {high:.3f}) | {p:.3f} | {len(ratios)} | {verdict} |")
    return lines, worse


def write(out: pathlib.Path, rows: list[dict], title: str) -> list[str]:
    """Writes rows and page; returns the figures that are worse."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["round", "build", "figure", "value"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    lines, worse = judge(rows)
    head = ["| figure | base | head | head/base (95 %) | p | pairs | |", "|---|---|---|---|---|---|---|"]
    named = "Worse by more than 2 % with p below 0.01: " + ("; ".join(worse) if worse else "nothing") + "."
    base, commit_of_head = re.findall(r"\b[0-9a-f]{8}\b", title)[:2]
    about = [f"- date (UTC): {time.strftime('%Y-%m-%d', time.gmtime())}", f"- commit: `{commit_of_head}`, beside `{base}`"]
    page = [f"# {title}", "", *about, "", *head, *lines, "", named, ""]
    (out / "table.md").write_text("\n".join(page), encoding="utf-8")
    return worse


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares the speed of this checkout with that of another commit.")
    parser.add_argument("base")
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--npb", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "results/regress")
    asked = parser.parse_args()
    base, head = commit(asked.base), commit("HEAD")
    trees = {"base": work_tree(base), "head": ROOT}
    for tree in trees.values():
        build(tree)
    run([str(ROOT / "tests/programs/build.sh"), "debian-openmpi"], cwd=ROOT)
    if asked.npb:
        run([str(HERE / "npb.sh"), str(asked.npb.absolute()), str(ROOT / "target/regress/npb")])
    else:
        print("regress: no NPB, so LU and SP are not measured; NPB=DIR or NPB=TAR names their sources")
    scratch = ROOT / "target/regress/rounds"
    run(["rm", "-rf", str(scratch)])
    title = f"{base} (base) and {head} (head) in turn, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC"
    rows: list[dict] = []
    until = time.monotonic() + asked.minutes * 60
    longest = 0.0
    for number in range(asked.rounds):
        began = time.monotonic()
        # Another round must end in time.
        if number > 0 and began + longest > until:
            break
        print(f"regress: round {number}", flush=True)
        for name, tree in trees.items():
            place = scratch / f"{number}-{name}"
            figures = in_grids(tree, place, number) | on_loopback(tree, place)
            rows += [{"round": number, "build": name, "figure": figure, "value": f"{value:.6g}"}
                     for figure, value in figures.items()]
        write(asked.out, rows, title)
        longest = max(longest, time.monotonic() - began)
    worse = write(asked.out, rows, title)
    print((asked.out / "table.md").read_text())
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
