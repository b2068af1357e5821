#!/usr/bin/env python3
"""Whether crates/mpis alone tells MPIs apart: elsewhere in the crates no family of launchers or of
programs is named, no text is compared with the name of an MPI, and no variable of an MPI is named,
but in tests and in crates/measure, which measures certain MPIs. A difference between MPIs is a
field of a row in crates/mpis."""

import pathlib
import re
import subprocess
import sys

NAMED = re.compile(r"\b(Mpi::(OpenMpi\w*|Mpich|Intel)|Family::(OpenMpi|Mpich))\b|\"(OMPI_MCA|PRTE|PMIX|PMI|MPIR|I_MPI)_")
NAME = r'"[^"]*(?:open ?-?mpi|mpich|hydra|prte|intel|mvapich)[^"]*"'
COMPARED = re.compile(
    r"(?:[=!]=\s*|\b(?:contains|starts_with|ends_with|eq_ignore_ascii_case|strip_prefix|strip_suffix)\(\s*)"
    + NAME + "|" + NAME + r"\s*(?:=>|\|)",
    re.IGNORECASE,
)
TESTS = re.compile(r"^#\[cfg\(test\)\]\s*\n(pub(\(\w+\))? )?mod \w+ \{", re.MULTILINE)


def main() -> int:
    listed = subprocess.run(["git", "ls-files", "crates/*.rs"], check=True, capture_output=True, text=True)
    wrong = 0
    for name in listed.stdout.splitlines():
        path = pathlib.Path(name)
        if path.parts[1] in ("mpis", "measure") or "tests" in path.parts or path.stem.endswith("tests") or not path.exists():
            continue
        text = TESTS.split(path.read_text(encoding="utf-8"), maxsplit=1)[0]
        for number, line in enumerate(text.splitlines(), 1):
            if NAMED.search(line) or COMPARED.search(line):
                print(f"{name}:{number}: tells MPIs apart: {line.strip()}", file=sys.stderr)
                wrong += 1
    return 1 if wrong else 0


sys.exit(main())
