#!/usr/bin/env python3
"""Whether every relative link and every path in the tracked Markdown files leads to a file, and an
anchor to a heading there; and whether a path of a file in a comment of Rust or C does.

A path begins with a folder of the repository's root, in backticks or not, or is in backticks and
either has a slash or ends as a file of source or text does. The second kind may be given from the
page, or by its last parts alone (`lanes/mod.rs`): then some tracked file or folder must end so. A
page in results/ also names files of rows that lie beside it (rows.csv, which may be rows.csv.gz).
Links to other hosts are not followed, nor paths behind a commit (`94fb3ff:results/x`), in code
blocks, or with a word in capitals that stands for something (`results/DATE-NAME`). Prints what
leads nowhere as FILE:LINE: TARGET: REASON; the status is 1 then."""

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)
FENCE = re.compile(r"^(```|    ).*$")
CODE = re.compile(r"`([^`]+)`")
# As a file's name, without what stands for something (DATE, *, {mpi}).
PATH = re.compile(r"[a-z0-9_.][\w.-]*(?:/[\w.-]+)*/?")
SUFFIXES = (".rs", ".md", ".py", ".c", ".h", ".sh", ".toml")

ROWS = re.compile(r"(?<![\w/:.-])[\w-]+\.(?:csv|txt)\b")
# A word in capitals that stands for something.
PLACEHOLDER = re.compile(r"\b(DATE|NAME|TARGET)\b")

# Folders that make fills.
MADE = ("target/", ".cache/")

# Paths that need not be here, and why.
EXCEPTIONS = {
    "job.toml": "a file of the user",
    "mpif.h": "a header of each MPI",
    "linux/tcp.h": "a header of the kernel",
    "linux/inet_diag.h": "a header of the kernel",
    "raw/": "a folder in each run's results, which is not tracked",
    "tests/mpi/": "what results/README.md calls the old name of tests/programs/",
}


def anchors(path: pathlib.Path) -> set[str]:
    """Names of headings, as forges make them: lower case, no punctuation, dashes for blanks."""
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


def paths(line: str, top: re.Pattern[str]) -> set[str]:
    """What a line names as paths of this repository."""
    text = LINK.sub("", line)
    spans = [word for span in CODE.findall(text) for word in span.split()[:1] if PATH.fullmatch(word)]
    named = {path for path in spans if "/" in path or path.endswith(SUFFIXES) and path not in SUFFIXES}
    found = named | {path.rstrip(".") for path in top.findall(text)}
    return {path for path in found if not PLACEHOLDER.search(path) and not path.startswith(MADE)}


def in_comments(top: re.Pattern[str]) -> list[str]:
    """Paths in comments of source that lead to no file, as FILE:LINE: PATH: REASON."""
    broken = []
    listed = subprocess.run(["git", "ls-files", "*.rs", "*.c", "*.h"], check=True, capture_output=True, text=True)
    for source in map(pathlib.Path, listed.stdout.split()):
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            if line.lstrip().startswith(("//", "/*", "*")):
                named = (path.rstrip(".") for path in top.findall(line))
                named = (path for path in named if path.endswith(SUFFIXES) and not pathlib.Path(path).exists())
                broken += [f"{source}:{number}: {path}: there is no such file" for path in named]
    return broken


def is_there(source: pathlib.Path, path: str, top: re.Pattern[str], files: list[str]) -> bool:
    if path in EXCEPTIONS or pathlib.Path(path).exists() or (source.parent / path).exists():
        return True
    end = f"/{path.rstrip('/')}"
    return not top.match(path) and any(f"/{file}".endswith(end) or f"{end}/" in f"/{file}" for file in files)


def main() -> int:
    files = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.split()
    folders = sorted({file.split("/")[0] for file in files if "/" in file})
    top = re.compile(rf"(?<![\w:/.-])(?:{'|'.join(map(re.escape, folders))})/[\w./-]*+(?![*{{$])")
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
            for path in sorted(paths(line, top)):
                if not is_there(source, path, top, files):
                    print(f"{source}:{number}: {path}: there is no such file")
                    broken += 1
            for rows in ROWS.findall(line) if source.parts[0] == "results" else ():
                if not any((source.parent / f"{rows}{end}").exists() for end in ("", ".gz")):
                    print(f"{source}:{number}: {rows}: there are no such rows here")
                    broken += 1
    for fault in (found := in_comments(top)):
        print(fault)
    return broken + len(found) > 0


if __name__ == "__main__":
    sys.exit(main())
