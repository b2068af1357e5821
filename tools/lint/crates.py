#!/usr/bin/env python3
"""Whether each crate uses only crates of lower levels, as the table of levels in ARCHITECTURE.md
has them.

The table lists every crate of crates/ once. Dependencies of tests do not count. Prints what
differs; the status is 1 then."""

import pathlib
import re
import sys
import tomllib

ROW = re.compile(r"^\| ([0-9]+) \| ((?:`\w+`(?:, )?)+) \|", re.M)
PREFIX = "causeway-"


def main() -> int:
    text = pathlib.Path("ARCHITECTURE.md").read_text()
    levels, faults = {}, []
    for level, names in ROW.findall(text):
        for name in re.findall(r"`(\w+)`", names):
            if name in levels:
                faults.append(f"ARCHITECTURE.md: {name} has two levels")
            levels[name] = int(level)
    crates = {path.parent.name: path for path in pathlib.Path("crates").glob("*/Cargo.toml")}
    for name in sorted(levels.keys() ^ crates.keys()):
        what = "has no level" if name in crates else "is no crate"
        faults.append(f"ARCHITECTURE.md: {name} {what}")
    for name, path in sorted(crates.items()):
        manifest = tomllib.loads(path.read_text())
        used = {**manifest.get("dependencies", {}), **manifest.get("build-dependencies", {})}
        for other in sorted(other.removeprefix(PREFIX) for other in used if other.startswith(PREFIX)):
            if levels.get(other, -1) >= levels.get(name, -1):
                faults.append(f"{path}: {name} uses {other}, which is not below it in ARCHITECTURE.md")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
