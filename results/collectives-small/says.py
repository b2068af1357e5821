"""What README.md says, computed from by-hand.csv."""

from figures import line, median, read, where

# Columns of the table: placement, MPI, and which algorithms beside the MPI's own.
COLUMNS = (("4+4", "debian-openmpi", ("native", "speakers", "direct")), ("4+4", "intel", ("native", "speakers", "direct")),
           ("3+3+3", "debian-openmpi", ("native", "speakers", "direct")), ("3+3+3", "mpich", ("speakers", "direct")))


def texts():
    rows = [row for row in where(read("by-hand.csv"), operation="alltoall") if row["iteration"] != "loop"]
    for size in (1, 2, 4, 8):
        cells = []
        for what, mpi, ways in COLUMNS:
            times = (median(where(rows, what=what, mpi=mpi, way=way, size_bytes=size << 10), "seconds") for way in ways)
            cells.append(", ".join(f"{time * 1000:.2f}" for time in times))
        yield line(f"{size} kB", *cells)
