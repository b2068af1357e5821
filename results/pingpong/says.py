"""The tables of README.md, from the rows here and those of results/latency."""

from figures import line, median, read, where

LIMIT_US = 5800 + (1 << 20) * 8 / 1000
MPIS = ("Open MPI 4.1.4", "MPICH 5.0.2")
PLACES = {"after 300 ms": "idle.csv", "among 8+8": "many.csv"}
SIZES = {1: "1 B", 1 << 16: "64 kB", 1 << 20: "1 MB", 4 << 20: "4 MB", 16 << 20: "16 MB", 64 << 20: "64 MB"}


def of_limit(name, **wanted):
    """The median of 1 MB as a ratio to the limit."""
    return f"{median(where(read(name), size_bytes=1 << 20, **wanted), 'one_way_us') / LIMIT_US:.3f}"


def hot(mpi, way, size, name="pingpong.csv"):
    """The median of the runs' medians as a ratio to the limit."""
    rows = where(read(name), mpi=mpi, way=way, settings="tuned", size_bytes=size)
    return f"{median(rows, 'median') / (5800 + size * 8 / 1000):.3f}"


def texts():
    for size in (1, 1 << 16, 1 << 20, 16 << 20, 64 << 20):
        yield line(SIZES[size], *(hot(mpi, way, size) for mpi in MPIS for way in ("direct", "causeway")))
    for label, name in PLACES.items():
        for size in (1, 1 << 16, 1 << 20, 4 << 20):
            ratios = (hot(mpi, way, size, name) for mpi in MPIS for way in ("direct", "causeway"))
            yield line(f"{label}, {SIZES[size]}", *ratios)
    headers = (5800 + (1 << 20) * 8 / 1000 * 1538 / 1448) / LIMIT_US
    yield line("Ethernet, IP and TCP headers alone", f"{headers:.3f}", f"{headers:.3f}")
    ways = {"plain TCP, directly": "direct", "through two relays that only read and write": "relays",
            "through both gateways, encrypted": "causeway"}
    for label, way in ways.items():
        pair = (of_limit("../latency/plain.csv", condition=condition, way=way) for condition in ("hot", "after 100 ms"))
        yield line(label, *pair)
