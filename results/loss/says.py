"""What README.md says, computed from loss.csv."""

from figures import groups, line, median, read, values, where


def share(size, time):
    return time / (5800 + int(size) * 8 / 1000)


def texts():
    rows = where(read("loss.csv"), way="causeway")
    for condition, label, bar in (("0.1% loss", "0.1 % loss", "1.3"), ("1% loss", "1 % loss", "2")):
        own = groups((row for row in where(rows, condition=condition) if int(row["size_bytes"]) >= 65536), "size_bytes")
        worst = max(share(size, median(one, "one_way_us")) for (size,), one in own.items())
        yield line(f"{label}, the worst size from 64 kB on", f"{worst:.3f}", bar)
    twice = sorted(values(where(read("loss.csv"), way="causeway twice", size_bytes=1024), "one_way_us"))
    yield line("1 % loss, 1 kB sent twice", f"{share(1024, twice[round((len(twice) - 1) * 0.99)]):.3f}", "1.5")
