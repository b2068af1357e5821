"""What README.md says, computed from latency, pingpong and start.csv."""

from figures import line, median, read, where

BUILDS, MPIS = ("before", "after"), ("MPICH 5.0.2", "Open MPI 4.1.4")


def shown(own, value, unit, label, mpi, size):
    """A line: medians over all rounds of both builds, direct and through Causeway."""
    ways = [[median(where(own, way=way, build=build), value) for build in BUILDS] for way in ("direct", "causeway")]
    times = [", ".join(f"{time / unit:.3f}" for time in way) for way in ways]
    return line(label, mpi, size, *times, *(f"{after / before:.4f}" for before, after in ways))


def texts():
    latency, start, hot = read("latency.csv"), read("start.csv"), where(read("pingpong.csv"), condition="hot")
    for mpi in MPIS:
        yield shown(where(latency, mpi=mpi), "one_way_us", 1000, "latency", mpi, 1)
        yield shown(where(start, mpi=mpi), "seconds", 1, "start, s", mpi, "")
        own = where(hot, mpi=mpi)
        for size in dict.fromkeys(row["size_bytes"] for row in own):
            yield shown(where(own, size_bytes=size), "one_way_us", 1000, "pingpong", mpi, size)
