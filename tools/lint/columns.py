#!/usr/bin/env python3
"""Whether lines of the tracked Markdown files and comments in Python stay at 100 columns, and other
comments at the width of Rust and C.

Not looked at in Markdown: tables, code, headings, lines that are one link or one word, and the
tables that the bench has written in results/. Not looked at in comments: fenced pictures, and words
that are too long by themselves. Prints FILE:LINE: COLUMNS; the status is 1 then. tools/lint/wrap.py
breaks the lines of a Markdown file anew.
"""

import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

COLUMNS = 100
# As rustfmt.toml and .clang-format have it for code; shell and TOML follow them.
CODE_COLUMNS = int(re.search(r"max_width = (\d+)", pathlib.Path("rustfmt.toml").read_text(encoding="utf-8"))[1])
# Python has no formatter here. Its comments are read as text is.
OTHER_COLUMNS = {".md": COLUMNS, ".py": COLUMNS}
LINK = re.compile(r"\]\([^)\s]+\)")

# Matches a line that is a comment, and one that ends in a comment in Rust: rustfmt breaks neither.
HASH = re.compile(r"\s*#(?!!)")
C = re.compile(r"\s*(//|/\*|\*)")
COMMENT = {
    ".rs": re.compile(r"\s*//|.*[;,(){}\]] // "),
    ".c": C,
    ".h": C,
    ".py": HASH,
    ".sh": HASH,
    ".toml": HASH,
}

def looked_at(path: pathlib.Path) -> bool:
    return not path.is_relative_to("results") or path.name == "README.md"


def long_lines(text: str) -> Iterator[tuple[int, int]]:
    """Number and columns of each in Markdown, less the targets of links: nobody can break these."""
    in_fence = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_fence = not in_fence
        columns = len(LINK.sub("]", line))
        is_code = in_fence or re.match(r" {4,}\S", line) and not re.match(r" *([-*]|\d+\.) ", line)
        if columns > COLUMNS and not is_code and not line.lstrip().startswith(("|", "#")) and " " in line.strip():
            yield number, columns


def long_comments(text: str, suffix: str, most: int) -> Iterator[tuple[int, int]]:
    """Number and columns of each in code. clang-format breaks what stands behind code in C."""
    in_fence, in_docstring = False, False
    for number, line in enumerate(text.splitlines(), 1):
        is_comment = COMMENT[suffix].match(line) is not None
        in_fence = is_comment and in_fence != ("```" in line)
        quotes = line.count('"""') if suffix == ".py" else 0
        is_comment |= in_docstring or line.lstrip().startswith('"""')
        in_docstring ^= quotes % 2 == 1
        if is_comment and not in_fence and len(line) > most and len(line.split()) > 2:
            yield number, len(line)


def main() -> int:
    suffixes = (".md", *COMMENT)
    command = ["git", "ls-files", *(f"*{suffix}" for suffix in suffixes)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    found = 0
    for path in map(pathlib.Path, listed.stdout.split()):
        if not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        most = OTHER_COLUMNS.get(path.suffix, CODE_COLUMNS)
        if path.suffix == ".md":
            lines = long_lines(text) if looked_at(path) else ()
        else:
            lines = long_comments(text, path.suffix, most)
        for number, columns in lines:
            print(f"{path}:{number}: {columns} columns, {most} at most")
            found += 1
    return found > 0


if __name__ == "__main__":
    sys.exit(main())
