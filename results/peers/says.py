"""The table of README.md, from peers.csv."""

from figures import line, median, read, where

SIZES = {1: "1 B", 4096: "4 kB", 65536: "64 kB", 1 << 20: "1 MB", 16 << 20: "16 MB"}


def texts():
    rows = read("peers.csv")
    for mpi in ("Open MPI 4.1.4", "MPICH 5.0.2"):
        for size, label in SIZES.items():
            times = (median(where(rows, mpi=mpi, size_bytes=size, way=way), "median_us") for way in ("direct", "wireguard", "ssh", "causeway"))
            yield line(mpi, label, *(f"{time / (5800 + size * 8 / 1000):.3f}" for time in times))
