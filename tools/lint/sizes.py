#!/usr/bin/env python3
"""Whether production files keep to 500 lines, and functions to 60.

Tests count to their file, not as functions. Prints what is too long as FILE:LINE: REASON; the
status is 1 then."""

import pathlib
import re
import sys

MAX_FILE_LINES, MAX_FUNCTION_LINES = 500, 60

# Tables, a statement for each row, which only get longer by being split, and why each is one.
READER = "reads a configuration: a statement for each key, in the order in which mistakes are told"
TABLES = {
    "crates/broker/src/config.rs: parse": READER,
    "crates/gateway/src/config/mod.rs: read": READER,
    "crates/lab/src/scenario/check.rs: site": READER,
}

RUST = re.compile(r"^( *)(?:pub(?:\([^)]*\))? )?(?:const |unsafe |async |extern \"C\" )*fn (\w+)")
C = re.compile(r"^()(?!static const|struct|enum|union|typedef)[\w][\w *]*?\b(\w+)\([^;{]*(?:\{|$)")


def functions(path: pathlib.Path, lines: list[str]) -> list[tuple[int, str, int]]:
    """First line, name and length of each function."""
    head, found, number = RUST if path.suffix == ".rs" else C, [], 0
    while number < len(lines):
        if path.suffix == ".rs" and lines[number].startswith("#[cfg(test)]"):
            break
        if match := head.match(lines[number]):
            end = number
            # Formatted code closes a function at the indent at which it begins.
            while end < len(lines) and lines[end] != f"{match[1]}}}" and not lines[end].rstrip().endswith(";"):
                if lines[end].rstrip().endswith("{"):
                    break
                end += 1
            if end < len(lines) and lines[end].rstrip().endswith("{"):
                while end < len(lines) and lines[end].rstrip() != f"{match[1]}}}":
                    end += 1
                found.append((number + 1, match[2], end - number + 1))
        number += 1
    return found


def main() -> int:
    sources = [*pathlib.Path("crates").glob("*/src/**/*.rs"), *(path for path in pathlib.Path("mpi").rglob("*.[ch]") if "tests" not in path.parts), *pathlib.Path("examples").glob("*/src/*.[ch]"), *pathlib.Path("lib").glob("*/src/*.[ch]")]
    wrong = 0
    for path in sorted(sources):
        if path.stem == "tests":
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) > MAX_FILE_LINES:
            print(f"{path}:{len(lines)}: a file of {len(lines)} lines; {MAX_FILE_LINES} at most")
            wrong += 1
        for line, name, length in functions(path, lines):
            if length > MAX_FUNCTION_LINES and f"{path}: {name}" not in TABLES:
                print(f"{path}:{line}: {name} has {length} lines; {MAX_FUNCTION_LINES} at most")
                wrong += 1
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
