#!/usr/bin/env python3
"""Whether every test of tests/e2e runs in a tier of tests/tiers, and in each tier at most once.

A tier's lines `e2e FILTER... [--skip FILTER...]` are read as the test program reads them: a test
runs if its name contains one of the filters and none that is skipped. Prints what differs; the
status is 1 then."""

import pathlib
import re
import shlex
import sys

TESTS = pathlib.Path("tests/e2e")
TIERS = pathlib.Path("tests/tiers")
TEST = re.compile(r"#\[test\]\n(?:#\[[^\n]*\]\n)*#\[ignore[^\n]*\]\n(?:#\[[^\n]*\]\n)*fn (\w+)\(")
CALL = re.compile(r"^ *(?:\w+=\S+ )*e2e (?!\(\))(.*)$", re.M)
# Where the filters of a call end: what is written to, what comes next.
END = re.compile(r"\s(?:[0-9]?>|&|\|\|)")


def tests() -> list[str]:
    """Names as the test program has them, by module."""
    names = []
    for path in sorted(TESTS.glob("*.rs")):
        module = "" if path.stem == "main" else f"{path.stem}::"
        names += [module + name for name in TEST.findall(path.read_text())]
    return names


def calls(path: pathlib.Path) -> list[tuple[list[str], list[str]]]:
    """The filters of each call of a tier, and what it skips."""
    found = []
    for words in CALL.findall(path.read_text().replace("\\\n", " ")):
        wanted, skipped = [], []
        words = iter(shlex.split(END.split(words)[0]))
        for word in words:
            if word == "--skip":
                skipped.append(next(words))
            else:
                wanted.append(word)
        found.append((wanted, skipped))
    return found


def runs(name: str, call: tuple[list[str], list[str]]) -> bool:
    wanted, skipped = call
    return any(word in name for word in wanted) and not any(word in name for word in skipped)


def main() -> int:
    tiers = {path.name: calls(path) for path in sorted(TIERS.glob("*.sh"))}
    used = {(tier, word): False for tier, found in tiers.items() for call in found for word in call[0]}
    names, faults = tests(), []
    for name in names:
        counts = {tier: sum(runs(name, call) for call in found) for tier, found in tiers.items()}
        if not any(counts.values()):
            faults.append(f"{TESTS}: {name}: runs in no tier")
        faults += [f"{TIERS}/{tier}: {name}: runs {count} times" for tier, count in counts.items() if count > 1]
        for tier, word in used:
            used[tier, word] |= word in name
    faults += [f"{TIERS}/{tier}: {word}: no test has such a name" for (tier, word), met in used.items() if not met]
    if not names:
        faults.append(f"{TESTS}: no tests found")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
