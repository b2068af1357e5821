"""What README.md says, computed from collectives.csv."""

from figures import groups, line, median, read, where

BARS = {"bcast": "1.3, 1.5", "reduce": "1.3, 1.5", "allreduce": "1.3, 1.5", "gather": "1.3, 1.5", "scatter": "1.3, 1.5",
        "allgather": "1.3, 1.5", "reduce_scatter": "1.5, 1.8", "alltoall": "1.5, 1.8", "scan": "1.5, 1.8"}
PLACES = {"4+4": (4, 4, 11_600), "3+3+3": (3, 3, 10_300)}
SIZES = (64 << 10, 1 << 20, 4 << 20)


def limit(place, operation, size):
    """R/2 + s/B in microseconds at 100 Mbit/s; s is what must cross."""
    here, most, round_trip = PLACES[place]
    factors = {"gather": most, "scatter": most, "allgather": most, "reduce_scatter": most, "alltoall": here * most}
    return round_trip / 2 + size * factors.get(operation, 1) * 8 / 100


def texts():
    rows = [row for row in where(read("collectives.csv"), library="causeway") if row["iteration"] != "loop"]
    for operation, bars in BARS.items():
        cells = []
        for place in PLACES:
            for size in SIZES:
                own = where(rows, sites=place, operation=operation, size_bytes=size) or where(rows, sites=f"{place} before split", operation=operation, size_bytes=size)
                of_limit = [median(one, "seconds") * 1e6 / limit(place, operation, size) for one in groups(own, "mpi").values()]
                cells.append(f"{max(of_limit):.2f}" if of_limit else "")
        yield line(operation.capitalize(), *cells, bars)
