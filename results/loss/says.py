"""What README.md says, computed from loss.csv."""

from figures import groups, line, median, read, where


def share(size, time):
    return time / (5800 + int(size) * 8 / 1000)


def texts():
    rows = where(read("loss.csv"), way="causeway")
    for lab, label, bar in (("loss-0.1", "0.1 % loss", "1.3"), ("loss-1", "1 % loss", "2")):
        own = groups((row for row in where(rows, lab=lab) if int(row["size_bytes"]) >= 65536), "mpi", "size_bytes")
        worst = max(share(size, median(one, "median")) for (_, size), one in own.items())
        yield line(f"{label}, the worst size from 64 kB on", f"{worst:.3f}", bar)
    twice = groups(where(rows, lab="loss-1-twice", size_bytes=1024), "mpi")
    worst = max(share(1024, median(one, "p99")) for one in twice.values())
    yield line("1 % loss, 1 kB sent twice, 99th percentile", f"{worst:.3f}", "1.5")
    once = groups(where(rows, lab="loss-1", size_bytes=1024), "mpi")
    worst = max(share(1024, median(one, "p99")) for one in once.values())
    yield line("1 % loss, 1 kB sent once, 99th percentile", f"{worst:.3f}", "")
