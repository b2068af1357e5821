"""Sets a second measurement of the papers' tables beside the first one."""

import statistics
import textwrap
from typing import Iterator, NamedTuple

import rows

# Columns of the applications' rows that name a cell, and the times in it.
APPLICATIONS = {
    "ray2mesh": (("sites", "ranks", "form"), ("broadcast_s", "rays_s", "exchange_s", "output_s")),
    "tsqr": (("rows", "program", "sites"), ("time_s",)),
    "techniques": (("mpi", "technique", "size_bytes"), ("median_us",)),
}
# Further apart than this is told by name.
FAR = 0.25


class Figure(NamedTuple):
    """The median of the runs, their least and largest."""

    median: float
    low: float
    high: float


def figures(found: dict) -> Iterator[tuple[tuple, Figure]]:
    """All times that were measured, by the names of experiment, cell and value."""
    for name, own in found.items():
        if name == "host":
            continue
        if name in APPLICATIONS:
            keys, times = APPLICATIONS[name]
            for key, group in rows.grouped(own, keys).items():
                sums = [sum(float(row[time]) for time in times) for row in group]
                yield (name, *key), Figure(statistics.median(sums), min(sums), max(sums))
        elif "entries" in own:
            for entry in own["entries"]:
                columns = (entry[column] for column in rows.CELL + rows.VALUE)
                key = (name, *(str(value) for value in columns if value))
                yield key, Figure(entry["median"], entry["low"], entry["high"])


def apart(first: Figure, again: Figure) -> float:
    """How far the second median is outside the first one's range, as a share of its nearer end."""
    if first.low <= again.median <= first.high or not first.low:
        return 0
    return again.median / first.high - 1 if again.median > first.high else 1 - again.median / first.low


def text(found: dict, repeated: dict) -> str:
    """A section of the page: how many figures of the second measurement lie within the first one's
    range, how far away the others are, and which are furthest."""
    first, again = dict(figures(found)), dict(figures(repeated))
    both = {key: apart(first[key], again[key]) for key in first if key in again}
    if not both:
        return ""
    outside = {key: distance for key, distance in both.items() if distance}
    within = [sum(distance <= bound for distance in both.values()) for bound in (0, 0.02, 0.10)]
    above = sum(again[key].median > first[key].high for key in outside)
    lines = textwrap.fill(
        f"Everything but the counts of messages was measured a second time, one run of each cell, on {repeated.get('host', 'the same host')}. Of {len(both)} times, "
        f"{within[0]} lie within the range of the first runs, {within[1]} within 2 % of it, and {within[2]} within 10 %; "
        f"{above} lie above that range, {len(outside) - above} below. By chance alone a third would lie outside the range of "
        "five runs, and a half outside that of three: a further run is as likely as any other to be the least or the "
        "largest, even where nothing has changed.", 100)
    far = sorted((key for key in outside if outside[key] > FAR), key=lambda key: -outside[key])
    page = f"## The second measurement\n\n{lines}\n"
    if far:
        page += f"\nMore than {FAR:.0%} outside:\n\n| cell | first, range | second |\n|---|---|---|\n"
        for key in far:
            one, two = first[key], again[key]
            page += f"| {', '.join(key)} | {one.median:.4g} ({one.low:.4g} to {one.high:.4g}) | {two.median:.4g} |\n"
    return page + "\n"
