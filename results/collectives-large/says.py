"""What README.md says, computed from rows.csv."""

from figures import line, median, read, where

MPIS = {"debian-openmpi": "Open MPI", "mpich": "MPICH", "intel": "Intel MPI"}
VERSIONS = {"debian-openmpi": "Open MPI 4.1.4", "mpich": "MPICH 5.0.2", "intel": "Intel MPI 2021.18"}
LIMITS = {"4+4": 274, "4+4 in turn": 274, "4+4 100 Mbit/s": 2690, "4+4 in turn 100 Mbit/s": 2690}
LABELS = {("bcast", "4+4"): "Bcast", ("bcast", "4+4 in turn"): "Bcast, ranks in turn", ("allreduce", "4+4"): "Allreduce",
          ("allreduce", "4+4 in turn"): "Allreduce, in turn", ("allreduce", "4+4 100 Mbit/s"): "Allreduce, 100 Mbit/s",
          ("allreduce", "4+4 in turn 100 Mbit/s"): "Allreduce, 100 Mbit/s, in turn"}


def short(ratio):
    return f"{ratio:.2f}" if ratio < 1.6 else f"{ratio:.1f}"


def ratio(value):
    """As the line of three MPIs has them."""
    return f"{value:.2f}" if value < 2 else f"{value:.1f}"


def texts():
    rows = [row for row in read("rows.csv") if row["iteration"] != "loop"]
    for (operation, what), label in LABELS.items():
        for mpi, name in (VERSIONS if (operation, what) == ("bcast", "4+4") else MPIS).items():
            own = where(rows, operation=operation, what=what, mpi=mpi)
            if not own:
                continue
            native, ours = (median(where(own, way=way), "seconds") * 1000 for way in ("native", "causeway"))
            limit = LIMITS[what]
            yield line(label, name, f"{native:.0f}", f"{ours:.0f}", short(native / ours), short(native / limit), f"{ours / limit:.2f}")
            label = ""
    # Three MPIs in one line.
    slow = where(rows, operation="bcast", what="4+4 100 Mbit/s")
    times = {way: [median(where(slow, mpi=mpi, way=way), "seconds") * 1000 for mpi in MPIS] for way in ("native", "causeway")}
    ours = times["causeway"]
    yield line("Bcast, 100 Mbit/s", ", ".join(MPIS.values()), ", ".join(f"{time:.0f}" for time in times["native"]), f"{min(ours):.0f} to {max(ours):.0f}",
               ", ".join(ratio(native / own) for native, own in zip(times["native"], ours)),
               ", ".join(ratio(native / 2690) for native in times["native"]), f"{max(ours) / 2690:.2f}")
