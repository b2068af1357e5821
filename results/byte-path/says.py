"""What README.md says, computed from latency, pingpong and start.csv."""

from figures import before_and_after, read, where

MPIS = ("MPICH 5.0.2", "Open MPI 4.1.4")


def texts():
    latency, start, hot = read("latency.csv"), read("start.csv"), where(read("pingpong.csv"), condition="hot")
    for mpi in MPIS:
        yield before_and_after(where(latency, mpi=mpi), "one_way_us", 1000, "latency", mpi, 1)
        yield before_and_after(where(start, mpi=mpi), "seconds", 1, "start, s", mpi, "")
        own = where(hot, mpi=mpi)
        for size in dict.fromkeys(row["size_bytes"] for row in own):
            yield before_and_after(where(own, size_bytes=size), "one_way_us", 1000, "pingpong", mpi, size)
