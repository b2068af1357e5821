#!/usr/bin/env python3
"""Whether a shell script reads the end of a pipe only in part.

A reader that ends early kills the program before it by SIGPIPE, now and then; under
`set -o pipefail` that ends the script without a word. Read all of it (`sed -n 1p`,
`grep ... >/dev/null`, `awk '!n++'`), or let the program before it stop by itself
(`find -print -quit`). Prints each line that does not; the status is 1 then."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EARLY = re.compile(
    r"\|\s*(?:head\b|grep (?:-\w+ )*-\w*[qm]|sed (?:-\w+ )*'?[^|']*\d*q['; ]|awk [^|]*\bexit\b)"
)


def main() -> int:
    scripts = subprocess.run(
        ["git", "ls-files", "*.sh", "tests/run", ".ci/run", "tools/setup/progress"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()
    broken = 0
    for name in scripts:
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            if not line.lstrip().startswith("#") and EARLY.search(line):
                print(f"{name}:{number}: its last program ends before the one that writes: {line.strip()}")
                broken += 1
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
