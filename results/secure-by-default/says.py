"""What README.md says, computed from latency, pingpong, start and loopback.csv."""

from figures import BUILDS, before_and_after, line, read, where

MPIS = ("MPICH 5.0.2", "Open MPI 4.1.4")


def texts():
    latency, start, hot = read("latency.csv"), read("start.csv"), where(read("pingpong.csv"), condition="hot")
    for kind in ("full", "quick"):
        for mpi in MPIS:
            yield before_and_after(where(latency, kind=kind, mpi=mpi), "one_way_us", 1000, f"latency ({kind})", mpi, 1)
            yield before_and_after(where(start, kind=kind, mpi=mpi), "seconds", 1, f"start ({kind}), s", mpi, "")
    for mpi in MPIS:
        own = where(hot, mpi=mpi)
        for size in dict.fromkeys(row["size_bytes"] for row in own):
            yield before_and_after(where(own, size_bytes=size), "one_way_us", 1000, "pingpong (quick)", mpi, size)
    rows = read("loopback.csv")
    for what in dict.fromkeys(row["what"] for row in rows):
        cells = [what]
        for build in BUILDS:
            own = where(rows, build=build, what=what)
            carried = [row for row in own if row["gbit_per_second"] and float(row["cpu_seconds"] or 0)]
            rates = [int(row["bytes"]) * 8 / 1e9 / float(row["cpu_seconds"]) for row in carried]
            cells.append((", ".join(f"{rate:.1f}" for rate in rates) or "-, -", ", ".join(f"{float(row['one_way_us']):.2f}" for row in own)))
        yield line(what, cells[1][0], cells[2][0], cells[1][1], cells[2][1])
