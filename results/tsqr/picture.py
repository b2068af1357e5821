#!/usr/bin/env python3
"""picture.py [PNG]: prints the tables of results/tsqr/README.md from tsqr.csv, and draws PNG.

The model: on S sites of r ranks, each with a core of its own, a factorisation takes C / (S r) + W.
C is the fastest run of as many rows on one rank. W is what the way between sites takes: the median
time of 1000 rows on S sites, one rank each, less that on one rank. The picture needs matplotlib.
"""

import csv
import itertools
import pathlib
import statistics
import sys

ROWS = pathlib.Path(__file__).resolve().parent / "tsqr.csv"
PROGRAMS = ("tsqr", "pdgeqrf")
SMALL = 1000


def read() -> dict:
    """Times of each (program, sites, ranks, rows), with the tree that is made for the links."""
    times = {}
    with ROWS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["tree"] == "binomial":
                continue
            key = row["program"], int(row["sites"]), int(row["ranks"]), int(row["rows"])
            times.setdefault(key, []).append(float(row["time_s"]))
    return times


def way(times: dict, program: str, sites: int) -> float:
    """W: seconds between sites in each factorisation."""
    one = statistics.median(times[program, 1, 1, SMALL])
    return max(0.0, statistics.median(times[program, sites, sites, SMALL]) - one)


def compute(times: dict, program: str, rows: float) -> float:
    """C: between numbers of rows that were measured it grows evenly, beyond with the rows."""
    known = sorted((key[3], min(found)) for key, found in times.items() if key[:3] == (program, 1, 1))
    for (before, low), (after, high) in itertools.pairwise(known):
        if rows <= after:
            return low + (high - low) * max(0, rows - before) / (after - before)
    return known[-1][1] * rows / known[-1][0]


def modelled(times: dict, program: str, rows: float, sites: int, ranks: int) -> float:
    between = way(times, program, sites) if sites > 1 else 0
    return compute(times, program, rows) / (sites * ranks) + between


def speed_up(times: dict, program: str, rows: float, ranks: int) -> float:
    return modelled(times, program, rows, 1, ranks) / modelled(times, program, rows, 4, ranks)


def print_measured(times: dict) -> None:
    print("| sites | ranks | rows | runs of each | tsqr, median (fastest) | PDGEQRF, median (fastest) | ratio |")
    print("|---|---|---|---|---|---|---|")
    for sites, ranks, rows in sorted({key[1:] for key in times}):
        if any((program, sites, ranks, rows) not in times for program in PROGRAMS):
            continue
        own = [times[program, sites, ranks, rows] for program in PROGRAMS]
        cells = [f"{statistics.median(found):.3f} ({min(found):.3f})" for found in own]
        runs = ", ".join(str(len(found)) for found in own)
        ratio = statistics.median(own[1]) / statistics.median(own[0])
        print(f"| {sites} | {ranks} | {rows} | {runs} | {cells[0]} | {cells[1]} | {ratio:.1f} |")


def print_model(times: dict) -> None:
    for sites in (2, 4):
        print(f"W, {sites} sites: " + ", ".join(f"{program} {way(times, program, sites):.4f} s" for program in PROGRAMS))
    print("| rows | ranks a site | tsqr: 1, 2, 4 sites (s) | speed-up | PDGEQRF: 1, 2, 4 sites (s) | speed-up |")
    print("|---|---|---|---|---|---|")
    for ranks, rows in ((1, 100000), (1, 400000), (1, 1000000), (1, 4000000), (32, 4000000), (32, 33554432)):
        cells = []
        for program in PROGRAMS:
            found = [modelled(times, program, rows, sites, ranks) for sites in (1, 2, 4)]
            cells.append(", ".join(f"{value:.3f}" for value in found) + f" | {found[0] / found[2]:.2f}")
        print(f"| {rows} | {ranks} | {cells[0]} | {cells[1]} |")


def draw(times: dict, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    colours = {"tsqr": "tab:blue", "pdgeqrf": "tab:orange"}
    names = {"tsqr": "tsqr", "pdgeqrf": "ScaLAPACK"}
    for program in PROGRAMS:
        for rows, style in ((1000, ":"), (1000000, "--"), (4000000, "-")):
            found = [times.get((program, sites, sites, rows)) for sites in (1, 2, 4)]
            points = [(sites, min(t)) for sites, t in zip((1, 2, 4), found) if t]
            left.plot(*zip(*points), style, marker="o", markersize=4, color=colours[program],
                      label=f"{names[program]}, {rows} rows")
        grid = [10**4 * 10 ** (i / 20) for i in range(72)]
        for ranks, style in ((1, "-"), (32, "--")):
            right.plot(grid, [speed_up(times, program, rows, ranks) for rows in grid], style, color=colours[program],
                       label=f"{names[program]}, {ranks} rank{'s' if ranks > 1 else ''} a site")
    left.set(title="measured, one rank a site, two cores for all", xlabel="sites", ylabel="time (s)", yscale="log", xticks=(1, 2, 4))
    right.set(title="modelled: four sites against one, a core a rank", xlabel="rows", ylabel="speed-up", xscale="log", ylim=(0, 4.2))
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize="x-small")
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    all_times = read()
    print_measured(all_times)
    print()
    print_model(all_times)
    if len(sys.argv) > 1:
        draw(all_times, sys.argv[1])
