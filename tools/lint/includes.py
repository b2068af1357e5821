#!/usr/bin/env python3
"""Whether the C files of mpi/src include each other without circles.

A file x.c and its header x.h are one. Neither folders nor files may make a circle; there are no
exceptions. Prints who is in one, and the shortest as FILE:LINE: TARGET; the status is 1 then."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2] / "mpi/src"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)

# What includes what, without suffixes, and where.
Includes = list[tuple[str, str, str]]


def includes() -> Includes:
    """Of all files; what is not of mpi/src is passed over."""
    found = []
    for source in sorted(path for path in ROOT.rglob("*") if path.suffix in (".c", ".h")):
        text = source.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            near, far = source.parent / match[1], ROOT / match[1]
            target = (near if near.exists() else far).resolve()
            if target.exists() and ROOT in target.parents:
                line = text.count("\n", 0, match.start(1)) + 1
                ends = (str(path.relative_to(ROOT).with_suffix("")) for path in (source, target))
                found.append((*ends, f"mpi/src/{source.relative_to(ROOT)}:{line}: {match[1]}"))
    return found


def folder(file: str) -> str:
    return file.split("/")[0]


def way(start: str, end: str, targets: dict[str, set[str]]) -> list[str]:
    """The shortest from a node to another, or back to itself; empty where there is none."""
    ways, seen = [[start]], set()
    for passed in ways:
        for target in sorted(targets.get(passed[-1], set()) - seen):
            seen.add(target)
            ways.append([*passed, target])
            if target == end:
                return ways[-1]
    return []


def circles(edges: Includes) -> list[tuple[set[str], list[str]]]:
    """Nodes that lead to each other, all of them, and the shortest circle of their first."""
    targets: dict[str, set[str]] = {}
    for source, target, _ in edges:
        targets.setdefault(source, set()).add(target)
    found, done = [], set()
    for node in sorted(targets):
        if node not in done and (circle := way(node, node, targets)):
            members = {other for other in targets if way(node, other, targets) and way(other, node, targets)}
            found.append((members, circle))
            done |= members
    return found


def main() -> int:
    files = includes()
    folders = [(folder(a), folder(b), where) for a, b, where in files if folder(a) != folder(b)]
    files = [edge for edge in files if edge[0] != edge[1]]
    broken = 0
    for what, edges in (("folders", folders), ("files", files)):
        for members, circle in circles(edges):
            broken += 1
            print(f"{what} of mpi/src in a circle: {', '.join(sorted(members))}")
            for step in zip(circle, circle[1:]):
                print("    " + next(where for *ends, where in edges if tuple(ends) == step))
    return broken > 0


if __name__ == "__main__":
    sys.exit(main())
