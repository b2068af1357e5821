#!/usr/bin/env python3
"""Holds what the pages of results/ say to the rows beside them.

`says.py` in a directory of results/ computes texts from its rows: lines of tables, sentences, parts
of them. `figures.py` ends with status 1 if the page beside it lacks one of them, or has a line with
figures in a table that is not among them. It skips sections that say "rows were not kept" or "there
are no rows", and the pages in tools/results/unheld.txt, which gives the reason for each.
`figures.py --print DIRECTORY` prints the texts, to be put into the page.
"""

import csv
import gzip
import importlib.util
import io
import pathlib
import re
import statistics
import sys
from typing import Callable, Iterable

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "results"
UNHELD = pathlib.Path(__file__).with_name("unheld.txt")
BUILDS = ("before", "after")
# The directory whose says.py runs.
place = RESULTS


def read(name: str) -> list[dict]:
    """The rows of a CSV file of the directory, compressed or not. A line of # is a remark."""
    path = place / name
    packed = path.with_name(path.name + ".gz")
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    lines = io.StringIO(data.decode("utf-8"), newline="")
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def where(rows: Iterable[dict], /, **wanted: object) -> list[dict]:
    """Rows with these values, given as text or as numbers."""
    return [row for row in rows if all(row[key] == str(value) for key, value in wanted.items())]


def groups(rows: Iterable[dict], *keys: str) -> dict[tuple, list[dict]]:
    """Rows that agree in these columns, in the order in which they come."""
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def values(rows: Iterable[dict], of: str | Callable[[dict], float]) -> list[float]:
    """A column, or what a function makes of each row."""
    return [of(row) if callable(of) else float(row[of]) for row in rows]


def median(rows: Iterable[dict], of: str | Callable[[dict], float]) -> float:
    """The median of a column, or of what a function makes of each row."""
    return statistics.median(values(rows, of))


def of_runs(rows: Iterable[dict], of: str, run: str = "run") -> float:
    """The median of the runs' medians."""
    return statistics.median(median(own, of) for own in groups(rows, run).values())


def line(*cells: object) -> str:
    """A line of a table."""
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def before_and_after(own: list[dict], value: str, unit: float, label: str, mpi: str, size: object) -> str:
    """A line: medians over all rounds of both builds, direct and through Causeway."""
    ways = [[median(where(own, way=way, build=build), value) for build in BUILDS] for way in ("direct", "causeway")]
    times = [", ".join(f"{time / unit:.3f}" for time in way) for way in ways]
    return line(label, mpi, size, *times, *(f"{after / before:.4f}" for before, after in ways))


def plain(text: str) -> str:
    """Text whose breaks of lines, and bold figures, do not count."""
    return re.sub(r"\s+", " ", text.replace("**", ""))


def texts_of(directory: pathlib.Path) -> list[str]:
    """What says.py of a directory computes."""
    global place
    place = directory
    spec = importlib.util.spec_from_file_location("says", directory / "says.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.texts())


def lines_of_tables(page: str) -> list[str]:
    """Lines of tables that have figures, without heads, of sections whose rows were kept."""
    sections = re.split(r"^(?=#+ )", page, flags=re.MULTILINE)
    without = re.compile("rows were not kept|there are no rows", re.IGNORECASE)
    kept = (section for section in sections if not without.search(plain(section)))
    return [text for section in kept for text in lines_of_section(section)]


def lines_of_section(section: str) -> list[str]:
    """The same of one section."""
    found, lines = [], section.splitlines()
    for number, text in enumerate(lines):
        is_head = number + 1 < len(lines) and re.match(r"\|\s*:?-", lines[number + 1])
        if text.startswith("|") and not is_head and re.search(r"\d", text) and not re.match(r"\|\s*:?-", text):
            found.append(text)
    return found


def faults_of(page: pathlib.Path) -> list[str]:
    """What a page says that its rows do not, and the other way round."""
    text = page.read_text(encoding="utf-8")
    says = texts_of(page.parent) if (page.parent / "says.py").exists() else []
    held, whole = plain(text), [plain(one) for one in says]
    faults = [f"does not say: {one}" for one in whole if one not in held]
    faults += [f"no rows say so: {one}" for one in lines_of_tables(text) if plain(one) not in whole]
    return faults


def unheld() -> dict[str, str]:
    """Pages that are not held to rows, and why."""
    lines = UNHELD.read_text(encoding="utf-8").splitlines()
    pairs = (line.split(": ", 1) for line in lines if line and not line.startswith("#"))
    return {name: why for name, why in pairs}


def main() -> int:
    if sys.argv[1:2] == ["--print"]:
        print("\n".join(texts_of(pathlib.Path(sys.argv[2]).resolve())))
        return 0
    status, known = 0, unheld()
    for page in sorted(RESULTS.glob("*/README.md")):
        name = page.parent.name
        faults = faults_of(page)
        if name in known and not (page.parent / "says.py").exists():
            if not faults:
                print(f"{UNHELD}: {name} has no figure in a table: take it out", file=sys.stderr)
                status = 1
            continue
        for fault in faults:
            print(f"{page.relative_to(RESULTS.parent)}: {fault}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    # says.py imports what is here.
    sys.modules["figures"] = sys.modules["__main__"]
    sys.exit(main())
