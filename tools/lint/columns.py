#!/usr/bin/env python3
"""Whether lines of the tracked Markdown files stay at 100 columns.

Not looked at: tables, code, headings, lines that are one link or one word, docs/decisions (they are historical) and the
tables that the bench has written in results/. Prints FILE:LINE: COLUMNS; the status is 1 then.
tools/lint/wrap.py breaks a file's lines anew.
"""

import pathlib
import re
import subprocess
import sys

COLUMNS = 100
LINK = re.compile(r"\]\([^)\s]+\)")


def looked_at(path: pathlib.Path) -> bool:
    if path.is_relative_to("docs/decisions"):
        return False
    return not path.is_relative_to("results") or path.name == "README.md"


def long_lines(text: str):
    """Number and columns of each. A link's target does not count: it cannot be broken."""
    in_fence = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_fence = not in_fence
        columns = len(LINK.sub("]", line))
        is_code = in_fence or re.match(r" {4,}\S", line) and not re.match(r" *([-*]|\d+\.) ", line)
        if columns > COLUMNS and not is_code and not line.lstrip().startswith(("|", "#")) and " " in line.strip():
            yield number, columns


def main() -> int:
    listed = subprocess.run(["git", "ls-files", "*.md"], check=True, capture_output=True, text=True)
    found = 0
    for path in filter(looked_at, map(pathlib.Path, listed.stdout.split())):
        for number, columns in long_lines(path.read_text(encoding="utf-8")):
            print(f"{path}:{number}: {columns} columns, {COLUMNS} at most")
            found += 1
    return found > 0


if __name__ == "__main__":
    sys.exit(main())
