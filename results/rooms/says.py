"""What README.md says, computed from rooms.csv, lines.csv and visits.csv."""

from figures import line, median, read, values, where

WHAT = {"pingpong": "ping-pong", "start": "start of 4 ranks"}
SIZES = {"0": "", "1": "1 B", "8": "8 B", "16384": "16 kB", "65536": "64 kB", "1048576": "1 MB", "4194304": "4 MB"}


def shown(rows, build):
    own = values(where(rows, build=build), "value")
    digits = 3 if own[0] < 1 else 2 if own[0] < 100 else 0
    return f"{median(where(rows, build=build), 'value'):.{digits}f} ({min(own):.{digits}f} to {max(own):.{digits}f}, {len(own)})"


def texts():
    rows = read("rooms.csv")
    kinds = {(row["section"], row["mpi"], row["what"], row["size_bytes"], row["unit"]) for row in rows}
    for section, mpi, what, size, unit in sorted(kinds, key=lambda kind: (kind[0], kind[1], kind[2], int(kind[3]))):
        own = where(rows, section=section, mpi=mpi, what=what, size_bytes=size)
        name = f"loopback, {what}" if section == "loopback" else WHAT.get(what, what)
        middle = {build: median(where(own, build=build), "value") for build in ("before", "after", "unchecked")}
        yield line(name, mpi, SIZES[size], unit, shown(own, "before"), shown(own, "after"), shown(own, "unchecked"),
                   f"{middle['after'] / middle['before']:.3f}", f"{middle['after'] / middle['unchecked']:.3f}")
    for row in read("lines.csv"):
        yield line(row["crate"], *(f"{int(row[when]):,}".replace(",", " ") if row[when] else "" for when in ("before", "after")))
    for row in read("visits.csv"):
        yield line(row["from"], row["visits"], row["files"], row["returns"])
