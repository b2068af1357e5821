#!/usr/bin/env python3
"""Sorts a run of `make bench` into the questions' directories: tools/results/take.py
results/DATE-NAME, then tools/results/index.py.

Each section's rows take the place of the question's older ones (git keeps those); its tables become
the .md file beside them. What somebody has written about the run (NOTE.md) is not moved: its place
is the question's README.md.
"""

import gzip
import pathlib
import re
import sys

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "results"
# Rows whose question has another name than they.
QUESTION = {"plain": "latency", "idle": "pingpong", "many": "pingpong", "disturbed": "survive", "ranks": "start"}
# Less is as easily read as it is.
COMPRESSED_FROM_BYTES = 4096


def store(rows: pathlib.Path, target: pathlib.Path) -> None:
    """The same bytes give the same file: no name, no time."""
    packed = target.with_name(target.name + ".gz")
    target.unlink(missing_ok=True)
    packed.unlink(missing_ok=True)
    content = rows.read_bytes()
    if len(content) < COMPRESSED_FROM_BYTES:
        target.write_bytes(content)
    else:
        packed.write_bytes(gzip.compress(content, 9, mtime=0))


def main() -> None:
    run = pathlib.Path(sys.argv[1])
    head, rest = (run / "README.md").read_text(encoding="utf-8").split("## Summary\n", 1)
    summary, rest = re.split(r"(?=^Unless a section)", rest, maxsplit=1, flags=re.MULTILINE)
    common, rest = rest.split("\n", 1)
    titles, *verdicts = summary.strip().split("\n")
    for section in re.split(r"(?=^## )", rest, flags=re.MULTILINE)[1:]:
        title = section.split("\n")[0].removeprefix("## ").strip()
        if not (rows := re.search(r"^Rows: (\S+?)\.csv", section, re.MULTILINE)):
            print(f"{title}: has no rows")
            continue
        question = RESULTS / QUESTION.get(rows[1], rows[1])
        question.mkdir(exist_ok=True)
        store(run / f"{rows[1]}.csv", question / f"{rows[1]}.csv")
        mine = [line for line in verdicts[1:] if line.split("|")[1].strip() == title]
        table = ["## Summary", "", titles, verdicts[0], *mine, ""] if mine else []
        text = [head.rstrip(), "", *table, common, "", section.strip(), ""]
        (question / f"{rows[1]}.md").write_text("\n".join(text), encoding="utf-8")
        print(f"{title}: {question.relative_to(RESULTS.parent)}/{rows[1]}.md")


if __name__ == "__main__":
    main()
