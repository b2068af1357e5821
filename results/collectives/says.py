"""The table of README.md with figures of collectives.csv: how many times as fast as the MPI's own
operation Causeway is, and where the MPI's own lies beside the limit."""

from figures import line, median, read, where
from index import limit_us

MPIS = ("Open MPI 4.1.4", "MPICH 5.0.2", "Intel MPI 2021.18")
SIZES = {8: "8 B", 65536: "64 kB", 1 << 20: "1 MB", 4 << 20: "4 MB"}


def cell(rows, mpi, ranks, placement, operation, size):
    """The ratio, and in brackets the MPI's own as a ratio to the limit."""
    own = [row for row in where(rows, mpi=mpi, ranks=ranks, placement=placement, operation=operation, size_bytes=size)
           if row["iteration"] != "loop"]
    native, ours = (median(where(own, way=way), "seconds") for way in ("native", "causeway"))
    return f"{native / ours:.2f} ({native * 1e6 / limit_us(own[0], None):.2f})"


def texts():
    rows = read("collectives.csv")
    for operation in ("allreduce", "allgather", "alltoall"):
        for size in (65536, 1 << 20, 4 << 20):
            cells = (cell(rows, mpi, "4+4", "true", operation, size) for mpi in MPIS)
            yield line(f"{operation.capitalize()}, 4+4 in turn, {SIZES[size]}", *cells)
    for operation in ("barrier", "allreduce"):
        for ranks in ("4+3", "3+3+3"):
            cells = (cell(rows, mpi, ranks, "false", operation, 8) for mpi in MPIS)
            size = "" if operation == "barrier" else ", 8 B"
            yield line(f"{operation.capitalize()}, {ranks}{size}", *cells)
