#!/usr/bin/env python3
"""Whether the C files of mpi/ call each other without circles.

includes.py cannot see these: a header declares what several files define. A name belongs to the
file that defines it; a file that has a static one of that name means its own. Prints the shortest
circle of each group of files, with the names; the status is 1 then."""

import pathlib
import re
import sys

import includes

COMMENT = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
# At the first column: a function with its body, or a variable.
FUNCTION = re.compile(r"^(?!typedef|#|enum(?: \w+)? \{|struct \w+ \{)[A-Za-z_][^;=\n{]*?\b(\w+)\([^;{]*\)\s*\{", re.MULTILINE)
VARIABLE = re.compile(r"^(?!extern|typedef|#|enum|return)(?:static )?[a-z_][\w ]*? \*?(\w+(?:\[[^\]]*\])?(?: = [^;]*?)?(?:, \*?\w+(?: = [^;,]*)?)*);$", re.MULTILINE)
# Each program has one.
ENTRY = {"main"}


def defined(text: str) -> tuple[set[str], set[str]]:
    """What a file defines for others, and for itself."""
    shared, own = set(), set()
    for match in [*FUNCTION.finditer(text), *VARIABLE.finditer(text)]:
        # Several variables, or one whose value has commas.
        parts = [match[1]] if "{" in match[1] else match[1].split(",")
        names = {found[1] for part in parts if (found := re.match(r"\s*\*?(\w+)", part))}
        (own if re.match(r"(__attribute__\S* )?static\b", match[0]) else shared).update(names)
    return shared, own


def main() -> int:
    broken = 0
    for library in includes.LIBRARIES:
        files = [path for path in sorted((includes.ROOT / library).rglob("*.c")) if "tests" not in path.parts]
        texts = {path.relative_to(includes.ROOT).as_posix(): COMMENT.sub("", path.read_text(encoding="utf-8")) for path in files}
        owners, statics = {}, {}
        for path, text in texts.items():
            shared, statics[path] = defined(text)
            owners |= {name: path for name in shared - ENTRY}
        uses: dict[tuple[str, str], set[str]] = {}
        for path, text in texts.items():
            for name in (set(re.findall(r"\w+", text)) & owners.keys()) - statics[path]:
                if owners[name] != path:
                    uses.setdefault((path, owners[name]), set()).add(name)
        for circle in includes.circles(list(uses)):
            broken += 1
            print("files of mpi/ call each other in a circle:")
            for step in zip(circle, circle[1:]):
                print(f"    mpi/{step[0]} -> mpi/{step[1]}: {', '.join(sorted(uses[step]))}")
    return broken > 0


if __name__ == "__main__":
    sys.exit(main())
