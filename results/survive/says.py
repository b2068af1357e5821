"""What README.md says, computed from its rows."""

import statistics

from figures import median, read, values, where


def texts():
    chaos, gaps = read("chaos.csv"), read("gaps.csv")
    longest = [row for row in chaos if row["seconds"] == "600"][0]
    yield f"In ten minutes {longest['kills']} workers were killed"
    every = [row for row in chaos if row["seconds"] == "600"][1]
    yield (f"{every['kills']} workers killed, {every['stops']} stopped for 5 s, {every['cuts']} resets, "
           f"{every['brokers']} brokers killed, {every['brokers_apart']} times two brokers apart, "
           f"{every['full_disks']} full disks.")
    last = chaos[-1]
    yield f"{last['kills']} workers killed, {last['short_of_memory']} that got no more memory"
    times = values(gaps, "longest_ms")
    yield (f"the longest was {median(gaps, 'longest_ms'):.1f} ms (median of {len(times)} runs, "
           f"{min(times):.1f} to {max(times):.1f} ms).")
    yield from stalls()
    yield from table()
    yield from idle()
    yield from disturbed()


def stalls():
    """How often a stream stood still, before and after, and how often the model killed."""
    before, *after = read("stalls.csv")
    yield f"in {before['runs_with_a_stall']} of {before['runs']} runs."
    runs, stood = (sum(int(row[name]) for row in after) for name in ("runs", "runs_with_a_stall"))
    yield f"since then in {stood} of {runs}."
    then, now = read("model.csv")
    yield f"it killed an end {then['kills']} times in {then['histories']} histories; now it does so {now['kills']} times"


def table():
    """The table of `before-after.csv`: medians, and the least and most."""
    rows = read("before-after.csv")
    speed, way = ("gbit_per_second_or_seconds", 2), ("one_way_us", 1)
    for name, what, (column, digits) in (
        ("clear text, 1 lane, Gbit/s", "plain 1 lane", speed),
        ("clear text, 4 lanes, Gbit/s", "plain 4 lanes", speed),
        ("TLS, 1 lane, Gbit/s", "TLS 1 lane", speed),
        ("a relay that only copies, Gbit/s", "perfect copy 2 relays", speed),
        ("clear text, 1 lane, 1 B one way, microseconds", "plain 1 lane", way),
        ("TLS, 1 lane, 1 B one way, microseconds", "TLS 1 lane", way),
        ("2000 streams opened, s", "causeway", ("gbit_per_second_or_seconds", 3)),
    ):
        yield line(name, where(rows, what=what), column, digits)


def idle():
    """What 2000 streams that have been idle for five seconds take: medians of both gateways."""
    rows = read("idle.csv")
    for name, when, column in (
        ("a gateway without streams, MB", "before", "resident_mb"),
        ("one of 2002 idle streams, kB, what they add", "all open", "added_kb_per_stream"),
    ):
        yield line(name, where(rows, when=when), column, 1)


def line(name, rows, column, digits):
    """A line of a table: the median of either build, and the least and most."""
    cells = []
    for build in ("before", "after"):
        found = [float(row[column]) for row in where(rows, build=build)]
        middle = statistics.median(found)
        cells.append(f"{middle:.{digits}f} ({min(found):.{digits}f} to {max(found):.{digits}f})")
    return f"| {name} | {' | '.join(cells)} |"


def disturbed():
    """The table of events: after over before, the worst size, now and then."""
    now, then = read("disturbed.csv"), read("disturbed-before.csv")
    yield "| event | of before | the same at 335e54a4 |"
    for event in ("worker killed", "hand-over", "cut of 1 s", "lane reset"):
        yield f"| {event} | {worst(now, event):.3f} | {worst(then, event):.3f} |"
    yield f"two halves of a job differ by up to {100 * (worst(now, 'nothing') - 1):.1f} %."


def worst(rows, event):
    """The largest ratio of medians, after over before, of all sizes."""
    ratios = []
    for size in sorted({row["size_bytes"] for row in rows}):
        of_size = where(rows, event=event, size_bytes=size)
        before, after = (where(of_size, when=when) for when in ("before", "after"))
        ratios.append(median(after, "one_way_us") / median(before, "one_way_us"))
    return max(ratios)
