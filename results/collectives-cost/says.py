"""What README.md says, computed from overhead.csv."""

from figures import groups, line, median, read, values


def texts():
    for keys, own in groups(read("overhead.csv"), "mpi", "sites", "communicator").items():
        added = values(own, lambda row: float(row["library_ns"]) - float(row["native_ns"]))
        medians = (median(own, "native_ns"), median(own, "library_ns"), median(own, lambda row: float(row["library_ns"]) - float(row["native_ns"])))
        yield line(*keys, *(f"{one:.1f}" for one in medians), f"{max(added):.1f}")
