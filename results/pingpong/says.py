"""The tables of README.md, from the rows here and those of results/latency."""

from figures import line, median, read, where

LIMIT_US = 5800 + (1 << 20) * 8 / 1000
MPIS = ("Open MPI 4.1.4", "MPICH 5.0.2")
CONDITIONS = {
    "hot": ("pingpong.csv", "hot"),
    "after 300 ms": ("idle.csv", "after 300 ms"),
    "after 5 s": ("idle.csv", "after 5 s"),
    "among 8+8": ("many.csv", "8+8 hot"),
    "among 8+8, after 300 ms": ("many.csv", "8+8 after 300 ms"),
}


def of_limit(name, **wanted):
    """The median of 1 MB as a ratio to the limit."""
    return f"{median(where(read(name), size_bytes=1 << 20, **wanted), 'one_way_us') / LIMIT_US:.3f}"


def texts():
    for label, (name, condition) in CONDITIONS.items():
        yield line(label, *(of_limit(name, mpi=mpi, condition=condition, way="causeway") for mpi in MPIS))
    headers = (5800 + (1 << 20) * 8 / 1000 * 1538 / 1448) / LIMIT_US
    yield line("Ethernet, IP and TCP headers alone", f"{headers:.3f}", f"{headers:.3f}")
    ways = {"plain TCP, directly": "direct", "through two relays that only read and write": "relays",
            "through both gateways, encrypted": "causeway"}
    for label, way in ways.items():
        pair = (of_limit("../latency/plain.csv", condition=condition, way=way) for condition in ("hot", "after 100 ms"))
        yield line(label, *pair)
    for mpi in reversed(MPIS):
        hot = of_limit("pingpong.csv", mpi=mpi, condition="hot", way="causeway")
        later = of_limit("idle.csv", mpi=mpi, condition="after 300 ms", way="causeway")
        yield line(f"{mpi} through both gateways", hot, f"{later} (after 300 ms)")
