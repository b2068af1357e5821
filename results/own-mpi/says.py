"""What README.md says, computed from pingpong, collectives, npb, latency and flood.csv."""

from figures import groups, line, median, of_runs, read, values, where

SIZES = {1: "1 B", 1 << 10: "1 kB", 64 << 10: "64 kB", 256 << 10: "256 kB", 1 << 20: "1 MB", 4 << 20: "4 MB", 16 << 20: "16 MB", 64 << 20: "64 MB"}
ROUND_TRIP_US, RATE = 11_600, 1e9
OPERATIONS = ("bcast", "reduce", "allreduce", "allgather", "alltoall")
NAMES = {"debian-openmpi": "Open MPI 4.1.4", "debian-mpich": "MPICH 4.0.2", "mpich": "MPICH 5.0.2",
         "abi": "MPICH 5.0.2, standard interface", "intel": "Intel MPI 2021.18", "openmpi": "Open MPI 5.0"}
MPIS = {"debian-openmpi": "Open MPI 4.1.4", "debian-mpich": "MPICH 4.0.2", "mpich": "MPICH 5.0.2", "intel": "Intel MPI 2021.18"}


def limit(size):
    return ROUND_TRIP_US / 2 + size * 8 / RATE * 1e6


def texts():
    rows = read("pingpong.csv")
    limits = [limit(size) / 1000 for size in SIZES]
    yield line("limit, ms", *(f"{one:.3f}" if one < 100 else f"{one:.1f}" for one in limits))
    for (world,), own in groups(rows, "world").items():
        times = (median(where(own, size_bytes=size), "one_way_us") / limit(size) for size in SIZES)
        yield line(world, *(f"{time:.3f}" for time in times))

    rows = read("collectives.csv")

    def times(world, size):
        return [of_runs(where(rows, world=world, size_bytes=size, operation=name), "seconds", "turn") * 1000 for name in OPERATIONS]

    one = {size: times("one Open MPI", size) for size in (8, 64 << 10, 1 << 20)}
    yield line("one Open MPI 4.1.4, ms", *(", ".join(f"{time:.2f}" for time in one[size]) for size in one))
    for world in dict.fromkeys(row["world"] for row in rows):
        if world != "one Open MPI":
            cells = ([f"{time / base:.2f}" for time, base in zip(times(world, size), one[size])] for size in one)
            yield line(" + ".join(NAMES[site] for site in world.split(" + ")), *(", ".join(cell) for cell in cells))

    rows = read("npb.csv")
    for name in ("cg", "mg", "lu"):
        own = where(rows, benchmark=f"{name}.A.4")
        worlds = ("own: Open MPI + MPICH", "one Open MPI")
        yield line(name.upper(), *(", ".join(f"{float(row['seconds']):.2f}" for row in where(own, world=world)) for world in worlds))

    rows = read("latency.csv")
    for mpi, name in MPIS.items():
        cells = []
        for size, unit in ((8, 1), (4 << 20, 1000)):
            for way in ("recv", "recv-any", "irecv-any"):
                alone, world = (median(where(rows, mpi=mpi, how=how, way=way, bytes=size), "median_ns") / unit for how in ("alone", "world"))
                more = f"{world - alone:+.0f}" if unit == 1 else f"{world / alone - 1:+.0%}".replace("%", " %")
                cells.append(f"{alone:.0f}, {world:.0f} ({more})")
        yield line(name, *cells)

    rows = read("flood.csv")
    for (way, build), own in groups(sorted(rows, key=lambda row: (row["way"], row["build"])), "way", "build").items():
        each = (where(own, size_bytes=size) for size in (4, 512, 2048, 4096, 16384, 65536, 262144))
        yield line(way, build, *(f"{median(some, 'seconds'):.2f}, {max(values(some, 'seconds')):.2f}" for some in each))
