"""The sentences of README.md, from latency.csv and plain.csv."""

import statistics

from figures import groups, line, median, read, values, where


def by_mpi(mpi, way):
    """The median of an MPI's runs' medians, in microseconds."""
    return median(where(read("latency.csv"), mpi=mpi, way=way, operation="pingpong"), "median")


def by_tcp(condition, way):
    """The median over plain TCP, in microseconds."""
    return median(where(read("plain.csv"), condition=condition, way=way, size_bytes=1), "one_way_us")


def texts():
    for mpi in ("MPICH 5.0.2", "Open MPI 4.1.4"):
        yield f"{by_mpi(mpi, 'causeway') - by_mpi(mpi, 'direct'):.0f} us with {mpi.rsplit(' ', 1)[0]}"
    hot, later = (
        {way: f"{by_tcp(condition, way) - by_tcp(condition, 'direct'):.0f}" for way in ("causeway", "relays")}
        for condition in ("hot", "after 100 ms")
    )
    yield f"They add {hot['causeway']} us over plain TCP, where two relays that only copy add {hot['relays']} us"
    yield f"After 100 ms of silence the gateways add {later['causeway']} us to plain TCP, the relays {later['relays']} us"
    builds = groups(read("then-and-now.csv"), "build")
    for (build,), rows in builds.items():
        yield line(build, *(", ".join(added(rows, mpi)) for mpi in ("Open MPI 4.1.4", "MPICH 5.0.2")))
    for (build, lab), rows in groups(read("plain-then-and-now.csv"), "build", "lab").items():
        times = (median(where(rows, way=way), "median_us") for way in ("direct", "relays", "causeway"))
        yield line(build, lab, *(f"{time:.0f}" for time in times))


def added(rows, mpi):
    """What the gateways add in each lab of a build: the difference of the medians of both ways."""
    for own in groups(where(rows, mpi=mpi), "lab", "count").values():
        ways = {way: values(where(own, way=way), "median_us") for way in ("direct", "causeway")}
        if all(ways.values()):
            yield f"{statistics.median(ways['causeway']) - statistics.median(ways['direct']):.0f}"
