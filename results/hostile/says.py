"""What README.md says, computed from rates.csv and bounded.csv."""

from figures import line, median, read, values, where

PROGRAMS = {
    "bulk": ("bulk: a stream that never pauses", "bulk"),
    "traffic": ("traffic: exchanges up to 1 MB, each byte checked", "traffic"),
}
MPIS = {"openmpi": "Open MPI 4.1.4", "mpich": "MPICH 4.0.2"}


def rate(row):
    return float(row["amount"]) / float(row["seconds"])


def texts():
    yield from table("bounded.csv")
    yield from table("rates.csv")


def table(name):
    rows = read(name)
    for program, labels in PROGRAMS.items():
        for label, (mpi, called) in zip(labels, MPIS.items()):
            own = where(rows, program=program, mpi=mpi)
            alone = median(where(own, beside="nobody"), rate)
            hostile, loop = where(own, beside="hostile"), where(own, beside="loop")
            shares = [value / alone for value in values(hostile, rate)]
            shown = f"{alone / 1e6:.1f} MB/s" if program == "bulk" else f"{alone:.1f} rounds/s"
            share = f"{median(hostile, rate) / alone:.2f} ({min(shares):.2f} to {max(shares):.2f})"
            yield line(label, called, shown, share, f"{median(loop, rate) / alone:.2f}")
    yield f"Medians of {len(where(rows, program='bulk', mpi='mpich', beside='hostile'))} phases"
