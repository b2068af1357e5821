"""The tables of README.md, from the rows here and those of results/latency."""

from figures import line, median, read, where

LIMIT_US = 5800 + (1 << 20) * 8 / 1000
MPIS = ("Open MPI 4.1.4", "MPICH 5.0.2")
EARLIER = {
    "after 300 ms": ("idle.csv", "after 300 ms"),
    "after 5 s": ("idle.csv", "after 5 s"),
    "among 8+8": ("many.csv", "8+8 hot"),
    "among 8+8, after 300 ms": ("many.csv", "8+8 after 300 ms"),
}
SIZES = {1: "1 B", 1 << 16: "64 kB", 1 << 20: "1 MB", 16 << 20: "16 MB", 64 << 20: "64 MB"}


def of_limit(name, **wanted):
    """The median of 1 MB as a ratio to the limit."""
    return f"{median(where(read(name), size_bytes=1 << 20, **wanted), 'one_way_us') / LIMIT_US:.3f}"


def hot(mpi, way, size):
    """The median of the runs' medians as a ratio to the limit."""
    rows = where(read("pingpong.csv"), mpi=mpi, way=way, settings="tuned", size_bytes=size)
    return f"{median(rows, 'median') / (5800 + size * 8 / 1000):.3f}"


def texts():
    for size, label in SIZES.items():
        yield line(label, *(hot(mpi, way, size) for mpi in MPIS for way in ("direct", "causeway")))
    for label, (name, condition) in EARLIER.items():
        yield line(label, *(of_limit(name, mpi=mpi, condition=condition, way="causeway") for mpi in MPIS))
    headers = (5800 + (1 << 20) * 8 / 1000 * 1538 / 1448) / LIMIT_US
    yield line("Ethernet, IP and TCP headers alone", f"{headers:.3f}", f"{headers:.3f}")
    ways = {"plain TCP, directly": "direct", "through two relays that only read and write": "relays",
            "through both gateways, encrypted": "causeway"}
    for label, way in ways.items():
        pair = (of_limit("../latency/plain.csv", condition=condition, way=way) for condition in ("hot", "after 100 ms"))
        yield line(label, *pair)
