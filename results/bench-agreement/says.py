"""What README.md says, computed from netpipe.csv, imb.csv and bcast.csv."""

from figures import groups, line, median, read, where


def texts():
    rows = read("netpipe.csv")
    worst = 0
    for size in dict.fromkeys(row["size_bytes"] for row in rows if not row["program"].startswith("NetPIPE")):
        cells = [size]
        for way in ("direct", "causeway"):
            own = where(rows, way=way, size_bytes=size)
            theirs = [row for row in own if row["program"].startswith("NetPIPE")]
            ours = [row for row in own if row not in theirs]
            times = [median(one, "one_way_us") for one in (theirs, ours)]
            cells += [f"{time:.0f}" for time in times] + [f"{times[1] / times[0]:.3f}"]
            worst = max(worst, abs(times[1] / times[0] - 1))
        yield line(*cells)
    yield f"The two differ by {worst:.1%} at most. Rows are in netpipe.csv.".replace("%", " %")

    quiet = [row for row in where(read("imb.csv"), sitting="quiet") if row["operation"] != "bcast"]
    ratios = []
    for row in quiet:
        times = [float(row["imb_us"]), float(row["causeway_bench_us"])]
        ratios.append(times[1] / times[0])
        yield line(row["way"], row["operation"], row["size_bytes"], *(f"{time:.0f}" for time in times), f"{ratios[-1]:.3f}")
    yield f"quiet machine: {min(ratios):.3f} to {max(ratios):.3f}"

    again, runs = read("bcast.csv"), set()
    worst = 0
    for (way, size), own in groups(again, "way", "size_bytes").items():
        times = [median(own, "imb_us"), median(own, "ours_us")]
        runs.add((int(size), len(own)))
        worst = max(worst, abs(times[1] / times[0] - 1))
        yield line(way, "bcast", size, *(f"{time:.0f}" for time in times), f"{times[1] / times[0]:.3f}", len(own))
    yield f"The two differ by {worst:.1%} at most:".replace("%", " %")
