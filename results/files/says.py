"""What README.md says, computed from rows.csv."""

from figures import line, median, read, where

FILES = {"20000": "20 000 of 1 kB", "3": "3 of 1 GB"}


def texts():
    rows = read("rows.csv")
    newest = rows[-1]["commit"]
    for files, name in FILES.items():
        for direction in ("there", "back"):
            cells = []
            for way in ("causeway", "scp", "rsync"):
                own = where(rows, files=files, direction=direction, way=way)
                own = [row for row in own if files != "3" or row["commit"] == newest]
                cells += [f"{median(own, 'seconds'):.1f}", len(own)] if own else ["", ""]
            yield line(name, direction, *cells)
    before = where(rows, files="3", direction="there", way="causeway")
    before = [row for row in before if row["commit"] != newest]
    yield f"3 GB took {median(before, 'seconds'):.1f} s there"
