"""The sentences of README.md, from latency.csv and plain.csv."""

from figures import median, read, where


def added(name, way, **wanted):
    """What a way adds to the direct one, in whole microseconds."""
    rows = where(read(name), size_bytes=1, **wanted)
    times = [median(where(rows, way=each), "one_way_us") for each in ("direct", way)]
    return f"{times[1] - times[0]:.0f}"


def texts():
    yield f"Both gateways add {added('latency.csv', 'causeway', mpi='MPICH 5.0.2')} us with MPICH"
    yield f"They add {added('latency.csv', 'causeway', mpi='Open MPI 4.1.4')} us with Open MPI"
    hot, later = ({way: added("plain.csv", way, condition=condition) for way in ("causeway", "relays")} for condition in ("hot", "after 100 ms"))
    yield f"They add {hot['causeway']} us over plain TCP, where two relays that only copy add {hot['relays']} us"
    yield f"After 100 ms of silence the gateways add {later['causeway']} us to plain TCP, the relays {later['relays']} us"
