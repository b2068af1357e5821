#!/usr/bin/env python3
"""Whether the C files of mpi/ include each other in the order of their folders, without circles.

Each library is one folder over mpi/common, with folders of its own. Each of these knows only those
before it in LIBRARIES. A file x.c and its header x.h are one, and files make no circle. There are
no exceptions. Prints FILE:LINE: what is wrong; the status is 1 then."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2] / "mpi"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# The folders of each library, in order; "" is its own files. ARCHITECTURE.md says what is in each.
LIBRARIES = {
    "common": ("binding", "forms", "tasks"),
    "collectives": ("select", "binding", "topology", "transfer", "intra_site", "algorithms", "async", "calls"),
    "world": ("", "frames", "engine", "streams", "rendezvous", "handles", "native", "basic", "calls"),
    "messages": ("",),
    "ucx": ("",),
    "programs": ("bench", "data", "explain", "loader"),
}
# What is no library's own: names that programs ask for, and the choice that explain shows.
SHARED = {"include": LIBRARIES, "collectives/select": ("programs",)}

# What includes what, and where.
Includes = list[tuple[pathlib.PurePath, pathlib.PurePath, str]]


def includes() -> Includes:
    """Of all files, by their paths in mpi/; what is not there is passed over."""
    found = []
    for library in LIBRARIES:
        for source in sorted(path for path in (ROOT / library).rglob("*") if path.suffix in (".c", ".h")):
            text = source.read_text(encoding="utf-8")
            for match in INCLUDE.finditer(text):
                near, far = source.parent / match[1], ROOT / match[1]
                target = (near if near.exists() else far).resolve()
                if target.exists():
                    line = text.count("\n", 0, match.start(1)) + 1
                    ends = (path.relative_to(ROOT) for path in (source, target))
                    found.append((*ends, f"mpi/{source.relative_to(ROOT)}:{line}"))
    return found


def is_in_order(source: pathlib.PurePath, target: pathlib.PurePath) -> bool:
    """Whether the one's folder may know the other's."""
    library, own = source.parts[0], source.parent.as_posix()
    other, far = target.parts[0], target.parent.as_posix()
    order = [f"{library}/{folder}".rstrip("/") for folder in LIBRARIES[library]]
    if own not in order:
        return False
    if library in SHARED.get(far, ()):
        return True
    if other != library:
        return other == "common" and library in ("collectives", "world", "messages")
    # Programs know nothing of each other.
    return own == far or (library != "programs" and far in order and own in order and order.index(far) < order.index(own))


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


def circles(edges: list[tuple[str, str]]) -> list[list[str]]:
    """The shortest circle of each group of nodes that lead to each other."""
    targets: dict[str, set[str]] = {}
    for source, target in edges:
        targets.setdefault(source, set()).add(target)
    found, done = [], set()
    for node in sorted(targets):
        if node not in done and (circle := way(node, node, targets)):
            found.append(circle)
            done |= {other for other in targets if way(node, other, targets) and way(other, node, targets)}
    return found


def main() -> int:
    all_ = includes()
    broken = 0
    for source, target, where in all_:
        if not is_in_order(source, target):
            broken += 1
            print(f"{where}: {target} does not come before it in the order of folders, or its own folder has no place there")
    files = [(source.with_suffix("").as_posix(), target.with_suffix("").as_posix(), where) for source, target, where in all_]
    for circle in circles([(a, b) for a, b, _ in files if a != b]):
        broken += 1
        print("files of mpi/ in a circle:")
        for step in zip(circle, circle[1:]):
            print("    " + next(f"{where}: {b}" for a, b, where in files if (a, b) == step))
    return broken > 0


if __name__ == "__main__":
    sys.exit(main())
