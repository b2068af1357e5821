"""What README.md says, computed from rows.csv."""

from figures import groups, line, median, read, values, where

MPIS = {"openmpi": "Open MPI", "mpich": "MPICH"}
LIMITS = {1: 5.8, 64 << 10: 6.32, 1 << 20: 14.19}
SIZES = {1: "1 B", 64 << 10: "64 kB", 1 << 20: "1 MB"}


def both(rows, versions, digits, unit, **wanted):
    times = [median(where(rows, version=version, **wanted), "microseconds") for version in versions]
    return [f"{time / 1000:.{digits}f} {unit}" for time in times]


def count(rows, **wanted):
    """Runs of each, and samples of a run."""
    own = where(rows, **wanted)
    samples = {row["samples"] for row in own}
    each = f" of {samples.pop()}" if len(samples) == 1 and samples != {"1"} else ""
    return f"{len(own)}{each}"


def texts():
    rows = read("rows.csv")
    for versions, mpis in (("AB", MPIS), ("CD", {"openmpi": "Open MPI"})):
        first = versions[0]
        echo = {"what": "connect-echo"}
        limit = "23.2 ms: two round trips" if first == "A" else "23.2 ms"
        yield line("a connection and an echo of 1 B (Python)", limit, *both(rows, versions, 2, "ms", **echo), count(rows, version=first, **echo))
        for size in SIZES if first == "A" else [1]:
            for mpi, name in mpis.items():
                name = {"Open MPI": "Open MPI 4.1.4", "MPICH": "MPICH 4.0.2"}[name] if size == 1 else name
                own = {"what": "one-way", "program": mpi, "bytes": size}
                yield line(f"{SIZES[size]} one way, {name}", f"{LIMITS[size]:.2f} ms", *both(rows, versions, 3, "ms", **own), count(rows, version=first, **own))
        for mpi, name in MPIS.items():
            own = {"what": "start", "program": mpi}
            runs = len(where(rows, version=first, **own))
            yield line(f"start and end of 4 ranks, {name}", "", *both(rows, versions, 0, "ms", **own), runs)
