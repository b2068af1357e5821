#!/usr/bin/env python3
"""Writes the index in results/README.md: for each bar of bars.toml the newest figure, computed from
the rows.

Each figure has the commit that was measured, and how many commits since then have touched what it
measures: what its page names, or else the commit that brought the rows. Both are as of the last
writing. `--check` writes nothing; its status is 1 where the index is not what the rows say, but for
these; where a page names no commit; and where README.md has a figure of a page whose commit is
older than the last release. bars.toml explains its keys.
"""

import csv
import gzip
import io
import itertools
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tomllib

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "results"
BEGIN, END = "<!-- index: written by tools/results/index.py -->", "<!-- end of the index -->"
# What is as of the last writing, and what a clone without its history does not know.
AGE = re.compile(r"\| [0-9a-f]*, \d* ?changes since \|")
SENSES = {"at_most": "at most", "at_least": "at least", "near": "within 5 % of"}
# Round trip in microseconds and bits per second: two sites (rennes-nancy), and the longest way from
# the root over three.
TWO, THREE = (11_600, 1e9), (10_300, 1e9)


def text(name: str) -> str:
    """A file of results/, compressed or not."""
    path, packed = RESULTS / name, RESULTS / (name + ".gz")
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else path.read_text(encoding="utf-8")


def placement(row: dict) -> str:
    """Ranks at each site: 4+4."""
    return (row.get("ranks") or row.get("sites") or row.get("what") or "").split(" ")[0]


def crossing(row: dict) -> float:
    """Bytes that must cross between sites one way, as measure/src/bench/collectives.rs has it."""
    operation, size = row.get("operation", ""), float(row["size_bytes"])
    ranks = [int(part) for part in re.findall(r"\d+", placement(row))] or [1]
    here, most, least = ranks[0], max(ranks[1:], default=1), min(ranks[1:], default=1)
    factors = {"barrier": 0, "gather": most, "scatter": most, "allgather": max(here, most),
               "reduce_scatter": max(here, most), "alltoall": here * most}
    if operation == "scan" and row.get("placement") == "true":
        return size * min(here, least)
    return size * factors.get(operation, 1)


def limit_us(row: dict, bits_per_second: float | None) -> float:
    """R/2 + s/B: nothing can end before."""
    round_trip, rate = THREE if placement(row).count("+") == 2 else TWO
    return round_trip / 2 + crossing(row) * 8e6 / (bits_per_second or rate)


def wanted(row: dict, bar: dict) -> bool:
    low, high = bar.get("sizes", (0, math.inf))
    sized = low <= float(row.get("size_bytes") or low) <= high and row.get("iteration") != "loop"
    return sized and all(row[column] in values for column, values in bar.get("where", {}).items())


def figures(bar: dict) -> dict:
    """What was measured: for each group of rows (`by`, `over`) one figure."""
    if "pattern" in bar:
        found = re.findall(bar["pattern"], text(bar["rows"]), re.MULTILINE)
        return {("",): float(len(found))} if bar.get("count") else {(what,): float(value) for what, value in found}
    groups: dict = {}
    ways = bar.get("ways", ["causeway"])
    for row in csv.DictReader(io.StringIO(text(bar["rows"]))):
        way = row.get(bar.get("way", "way"), "")
        if way in ways and wanted(row, bar):
            numbers = {column: float(value) for column, value in row.items() if re.fullmatch(r"-?[\d.]+", value or "")}
            value = eval(bar["value"], {"__builtins__": {}}, numbers)
            if bar.get("of_limit"):
                value /= limit_us(row, bar.get("bits_per_second"))
            key = tuple(row[column] for column in bar.get("by", []) + bar.get("over", []))
            groups.setdefault(key, {}).setdefault(way, []).append(value)
    middle = (lambda of: sorted(of)[math.ceil(len(of) * 0.99) - 1]) if bar.get("p99") else statistics.median
    found = {}
    for key, by_way in groups.items():
        if set(ways) <= set(by_way):
            first, *second = (middle(by_way[way]) for way in ways)
            first -= bar.get("beyond", 0)
            found[key] = first if not second else first - second[0] if bar.get("difference") else first / second[0]
    return found


def badness(figure: float, bar: dict) -> float:
    """The larger the worse, at most 0 where the bar holds."""
    if "at_least" in bar:
        return bar["at_least"] - figure
    if "near" in bar:
        return abs(figure / bar["near"] - 1) - 0.05
    return figure - bar.get("at_most", math.inf)


def described(rows: str) -> pathlib.Path:
    """The text that says when rows were measured: the .md beside them, or the directory's."""
    beside = (RESULTS / rows).with_suffix(".md")
    return beside if beside.exists() else beside.with_name("README.md")


def git(*words: str) -> str:
    """What git says; nothing where it fails."""
    return subprocess.run(["git", *words], cwd=RESULTS, capture_output=True, text=True).stdout.strip()


def named(page: pathlib.Path) -> str | None:
    """The commit that a page names: what was measured, or what brought the rows."""
    found = re.search(r"^- (?:causeway|commit): `?([0-9a-f]{7,12})", page.read_text(encoding="utf-8"), re.M)
    return found and found[1]


def check_pages() -> None:
    """Refuses pages without a commit, and figures of the project's README from before a release."""
    pages = sorted(RESULTS.glob("*/*.md"))
    if lacking := [str(page.relative_to(RESULTS)) for page in pages if not named(page)]:
        sys.exit(f"results: no line '- commit: ...' in {', '.join(lacking)}")
    release = git("describe", "--tags", "--abbrev=0")
    readme = (RESULTS.parent / "README.md").read_text(encoding="utf-8")
    for name in set(re.findall(r"\(results/([\w-]+)/[\w.-]*\)", readme)) if release else ():
        commit = named(RESULTS / name / "README.md") or git("log", "-1", "--format=%h", "--", name)
        if subprocess.run(["git", "merge-base", "--is-ancestor", commit, f"{release}~1"], cwd=RESULTS).returncode == 0:
            sys.exit(f"README.md has figures of results/{name}, which were measured at {commit}, before {release}")


def age(rows: str, touches: dict) -> str:
    """The commit that was measured, and how many since then have touched what a figure measures."""
    measured = named(described(rows))
    commit = measured and git("rev-parse", "--short=8", "--verify", "--quiet", f"{measured}^{{commit}}")
    file = rows + (".gz" if (RESULTS / (rows + ".gz")).exists() else "")
    commit = commit or git("log", "-1", "--format=%h", "--abbrev=8", "--", file)
    folders = touches.get(rows.split("/")[0], touches["usual"])
    count = git("rev-list", "--count", f"{commit}..HEAD", "--", *(f":/{folder}" for folder in folders))
    return f"{commit}, {count} changes since"


def name(column: str, part: str) -> str:
    """A column's value as the index has it: a number is a size unless the column says otherwise,
    and "true" stands for ranks in turn."""
    if part.isdigit() and column == "ranks":
        return f"{part} ranks"
    if part.isdigit():
        size = int(part)
        return f"{size >> 20} MB" if size >> 20 else f"{size >> 10} kB" if size >> 10 else f"{size} B"
    return {"true": "ranks in turn", "false": ""}.get(part, part)


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 or value == int(value) else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def line(bar: dict, touches: dict) -> str:
    found = figures(bar)
    if not found:
        sys.exit(f"results/bars.toml: {bar['what']}: no rows")
    grouped = itertools.groupby(sorted(found.items()), key=lambda item: item[0][:len(bar.get("by", []))])
    worst = [max(group, key=lambda item: badness(item[1], bar)) for _, group in grouped]
    key, figure = max(worst, key=lambda item: badness(item[1], bar))
    columns = bar.get("by", []) + bar.get("over", []) or [""]
    held, where = sum(badness(one, bar) <= 0 for _, one in worst), ", ".join(filter(None, map(name, columns, key)))
    unit = f" {bar['unit']}" if "unit" in bar else ""
    wants = next(f"{words} {bar[sense]:g}{unit}" for sense, words in SENSES.items() if sense in bar)
    beside = number(max(figures(bar["beside"]).values())) + unit if "beside" in bar else ""
    beside = bar.get("limit", "1: R/2 + s/B") + beside
    date = re.search(r"\d{4}-\d\d-\d\d", described(bar["rows"]).read_text(encoding="utf-8"))[0]
    rows = bar["rows"] + (".gz" if (RESULTS / (bar["rows"] + ".gz")).exists() else "")
    return (f"| {bar['what']} | {number(figure)}{unit}{' (' + where + ')' if where else ''} | {held} of {len(worst)} "
            f"| {wants} | {beside} | [{rows.split('/')[0]}]({rows}), {date} | {age(bar['rows'], touches)} |")


def main() -> None:
    check_pages()
    table = tomllib.loads((RESULTS / "bars.toml").read_text(encoding="utf-8"))
    # A name that begins with a date is of a run that nobody has sorted in yet (take.py).
    directories = {path.name for path in RESULTS.iterdir() if path.is_dir() and not path.name[0].isdigit()}
    if unlike := directories ^ set(table["questions"]):
        sys.exit(f"results/bars.toml: [questions] and the directories differ: {', '.join(sorted(unlike))}")
    lines = ["| figure | newest, worst | holds | bar | limit beside it | rows, measured | commit |",
             "|---|---|---|---|---|---|---|"]
    lines += [line(bar, table["touches"]) for bar in table["bar"]] + ["", "| directory | what it answers |", "|---|---|"]
    lines += [f"| [{name}]({name}/) | {question} |" for name, question in sorted(table["questions"].items())]
    readme = RESULTS / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = old.split(BEGIN)[0] + "\n".join([BEGIN, "", *lines, "", END]) + old.split(END)[1]
    if "--check" not in sys.argv:
        readme.write_text(new, encoding="utf-8")
    elif AGE.sub("", new) != AGE.sub("", old):
        sys.exit("results/README.md: its index is not what bars.toml and the rows say: run tools/results/index.py")


if __name__ == "__main__":
    main()
