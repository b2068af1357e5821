#!/usr/bin/env python3
"""Whether every relative link of the tracked Markdown files leads to a file, and its anchor to a heading there.

Links to other hosts are not followed. Prints what leads nowhere as FILE:LINE: TARGET: REASON; the status is 1 then."""

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)
FENCE = re.compile(r"^(```|    ).*$")


def anchors(path: pathlib.Path) -> set[str]:
    """Names of a file's headings, as forges make them: lower case, no punctuation, dashes for blanks."""
    headings = HEADING.findall(path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def reason(source: pathlib.Path, target: str) -> str | None:
    """Why a link leads nowhere; None where it does not."""
    name, _, anchor = target.partition("#")
    path = source.parent / name if name else source
    if not path.exists():
        return "there is no such file"
    if anchor and path.suffix == ".md" and anchor not in anchors(path):
        return "there is no such heading"
    return None


def main() -> int:
    listed = subprocess.run(["git", "ls-files", "*.md"], check=True, capture_output=True, text=True)
    broken = 0
    for source in map(pathlib.Path, listed.stdout.split()):
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            if FENCE.match(line):
                continue
            for target in LINK.findall(line):
                if "://" not in target and not target.startswith("mailto:") and (why := reason(source, target)):
                    print(f"{source}:{number}: {target}: {why}")
                    broken += 1
    return broken > 0


if __name__ == "__main__":
    sys.exit(main())
