"""Reads the rows of `causeway bench` and says what they bear: for each cell and value how many runs
there were, the median of the runs' medians, their least and largest, and what TCP did."""

import csv
import pathlib
import statistics
from typing import Iterable

CELL = ("program", "mpi", "way", "settings", "traffic")
VALUE = ("operation", "measure", "size_bytes", "unit")
COUNTS = ("segments", "resent", "timeouts", "out_of_order", "crossed_bytes", "idle_restarts")


def read(file: pathlib.Path) -> list[dict]:
    """The lines of a CSV file."""
    with open(file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def grouped(rows: Iterable[dict], keys: Iterable[str]) -> dict[tuple, list[dict]]:
    """Rows that agree in these columns."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def entry(key: tuple, own: list[dict]) -> dict:
    """One value of one cell: `runs` has each run's median by its number."""
    found = dict(zip(CELL + VALUE, key))
    runs = {int(row["run"]): float(row["median"]) for row in own}
    found |= {
        "size_bytes": int(found["size_bytes"]) if found["size_bytes"] else None,
        "runs": runs,
        "median": statistics.median(runs.values()),
        "min": min(float(row["min"]) for row in own),
        "low": min(runs.values()),
        "high": max(runs.values()),
    }
    return found


def network(key: tuple, own: list[dict]) -> dict | None:
    """Means of what TCP did in the runs of a cell; None where nobody counted."""
    runs = {row["run"]: row for row in own if row["segments"]}
    if not runs:
        return None
    found = dict(zip(CELL, key)) | {"count": len(runs)}
    for name in COUNTS:
        counts = [int(row[name]) for row in runs.values() if row[name]]
        found[name] = statistics.mean(counts) if counts else None
    crossed = found.pop("crossed_bytes")
    return found | {"crossed_megabytes": None if crossed is None else crossed / 1e6}


def summary(rows: list[dict]) -> dict:
    """What readers.py reads: entries and the network of each cell."""
    measured = [row for row in rows if row["result"] == "measured"]
    entries = [entry(key, own) for key, own in grouped(measured, CELL + VALUE).items()]
    cells = [network(key, own) for key, own in grouped(rows, CELL).items()]
    return {"entries": entries, "network": [cell for cell in cells if cell]}


def ratio(above: dict, below: dict) -> tuple[float, float, float, int]:
    """The ratio of two medians, the least and largest ratio of two runs of the same turn, and how
    many turns there are."""
    turns = sorted(above["runs"].keys() & below["runs"].keys())
    ratios = [above["runs"][turn] / below["runs"][turn] for turn in turns if below["runs"][turn]]
    middle = above["median"] / below["median"]
    return middle, min(ratios, default=middle), max(ratios, default=middle), len(ratios)
