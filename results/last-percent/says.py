"""What README.md says, computed from npb, pingpong, pingpong-pinned and wake-ups.csv."""

import statistics

from figures import groups, line, median, of_runs, read, where

SIZES = {1: "1 B", 1 << 20: "1 MB", 4 << 20: "4 MB", 16 << 20: "16 MB", 64 << 20: "64 MB"}


def limit(size, share=1.0):
    """One way in microseconds: R/2 + s/B, and with headers that are so much of the bytes."""
    return 5800 + size * 8 / 1000 * share


def pairs(rows, name, condition):
    """Times of direct and Causeway, and the gateways' time in s, by pair."""
    own = where(rows, program=f"{name}.A", condition=condition)
    for both in groups(own, "pair").values():
        ways = {row["way"]: row for row in both}
        yield tuple(float(ways[way]["time_s"]) for way in ("direct", "causeway")) + (float(ways["causeway"]["gateways_us"] or 0) / 1e6,)


def suite(rows, condition, names, shown):
    for name in names:
        found = list(pairs(rows, name.lower(), condition))
        direct, ours, gateways = (statistics.median(column) for column in zip(*found))
        ratios = [after / before for before, after, _ in found]
        ratio = f"{statistics.median(ratios):.3f}"
        without = statistics.median((after - spent / 2) / before for before, after, spent in found)
        times = [f"{direct:.2f}", f"{ours:.2f}"]
        yield line(*shown(name, len(found), times, ratio, f"{min(ratios):.3f} to {max(ratios):.3f}", f"{gateways:.2f}", f"{without:.3f}"))


def texts():
    rows = read("npb.csv")
    yield from suite(rows, "usual", ("CG", "MG", "LU", "BT", "SP", "IS", "FT"), lambda name, count, times, ratio, spread, spent, without: (
        name, count, *times, ratio, spent, without))
    yield from suite(rows, "usual on Intel Xeon", ("CG", "MG", "LU", "BT", "SP"), lambda name, count, times, ratio, spread, spent, without: (
        name, *times, f"{ratio} ({spread})", spent, without))
    yield from suite(rows, "pinned on Intel Xeon", ("CG", "MG", "LU", "BT", "SP"), lambda name, count, times, ratio, spread, spent, without: (
        name, count, *times, f"{ratio} ({spread})", spent))

    rows = read("pingpong.csv")
    ways = list(dict.fromkeys(row["way"] for row in rows))
    for size, label in SIZES.items():
        headers = limit(size, 1538 / 1448) / limit(size)
        shares = (of_runs(where(rows, way=way, size_bytes=size), "one_way_us", "turn") / limit(size) for way in ways)
        yield line(label, "1" if size == 1 else f"{headers:.3f}", *(f"{share:.3f}" for share in shares))

    rows = read("pingpong-pinned.csv")
    conditions = list(dict.fromkeys((row["condition"], row["way"]) for row in rows))
    wanted = [("not pinned", "direct"), ("not pinned", "causeway"), *(pair for pair in conditions if pair[0] != "not pinned" and pair[1] == "causeway")]
    for size, label in SIZES.items():
        shares = (median(where(rows, condition=condition, way=way, size_bytes=size), "median_us") / limit(size) for condition, way in wanted)
        yield line(label, *(f"{share:.3f}" for share in shares))
