#!/usr/bin/env python3
"""Refuses a dependency of which an advisory of RustSec says that it is to be replaced.

The database itself is asked where its Git server is reached (`cargo-deny check advisories`).
Elsewhere a line says so, and Cargo.lock and fuzz/Cargo.lock are held to advisories.csv, which has
what the database said of crates that they name, at the date in its first line. `--update DIRECTORY`
writes that file anew from a clone of https://github.com/RustSec/advisory-db; a row whose id is not
in the clone, because the clone is older, stays.
"""

import csv
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCKS = ("Cargo.lock", "fuzz/Cargo.lock")
TABLE = pathlib.Path(__file__).with_suffix(".csv")
DATABASE = "https://github.com/RustSec/advisory-db"
DENY = ROOT / ".cache/mpi/lint/bin/cargo-deny"


def locked() -> set[tuple[str, str]]:
    files = (tomllib.loads((ROOT / lock).read_text()) for lock in LOCKS)
    return {(package["name"], package["version"]) for file in files for package in file["package"]}


def number(version: str) -> tuple[int, ...]:
    """A version's three numbers."""
    parts = re.split(r"[-+]", version.strip())[0].split(".")
    return tuple(int(part) for part in (parts + ["0", "0"])[:3])


def meets(version: str, requirement: str) -> bool:
    """Whether a version meets all conditions of `>= 1.2, < 2`."""
    own = number(version)
    for condition in requirement.split(","):
        sign, other = re.fullmatch(r"\s*(>=|<=|>|<|=|\^|~)?\s*(\S+)\s*", condition).groups()
        than = number(other)
        # Up to the first number that is not 0, or the one that ~ names.
        fixed = 2 if sign == "~" else next((at + 1 for at, part in enumerate(than) if part), 3)
        same = own[:fixed] == than[:fixed]
        right = {">=": own >= than, "<=": own <= than, ">": own > than, "<": own < than, "=": own == than,
                 "^": same and own >= than, "~": same and own >= than, None: same and own >= than}
        if not right[sign]:
            return False
    return True


def table() -> tuple[str, list[dict]]:
    head, *lines = TABLE.read_text(encoding="utf-8").splitlines()
    return head, list(csv.DictReader(lines))


def update(clone: pathlib.Path) -> None:
    names = {name for name, _ in locked()}
    rows = {row["id"]: row for row in table()[1]} if TABLE.exists() else {}
    git = ["git", "-C", str(clone)]
    files = subprocess.run([*git, "ls-tree", "-r", "--name-only", "HEAD", "crates/"], check=True, capture_output=True, text=True)
    for file in files.stdout.splitlines():
        crate = file.split("/")[1]
        if crate not in names or not file.endswith(".md"):
            continue
        text = subprocess.run([*git, "show", f"HEAD:{file}"], check=True, capture_output=True, text=True).stdout
        said = tomllib.loads(re.search(r"```toml\n(.*?)```", text, re.S)[1])
        advisory, versions = said["advisory"], said["versions"]
        if "withdrawn" in advisory or advisory.get("informational"):
            continue
        fine = versions.get("patched", []) + versions.get("unaffected", [])
        rows[advisory["id"]] = {"id": advisory["id"], "crate": crate, "fine": "; ".join(fine)}
    date = subprocess.run([*git, "log", "-1", "--format=%cs"], check=True, capture_output=True, text=True).stdout.strip()
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# {DATABASE}, as of {date}; versions that need no replacement, of crates that Cargo.lock names\n")
        writer = csv.DictWriter(file, ["id", "crate", "fine"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[key] for key in sorted(rows))


def main() -> None:
    if sys.argv[1:2] == ["--update"]:
        return update(pathlib.Path(sys.argv[2]))
    head, rows = table()
    wrong = [f"{crate} {version}: {row['id']} wants {row['fine'] or 'another crate'}"
             for crate, version in sorted(locked()) for row in rows if row["crate"] == crate
             and not any(meets(version, fine) for fine in row["fine"].split("; ") if fine)]
    if wrong:
        sys.exit("\n".join(wrong))
    try:
        reached = subprocess.run(["git", "ls-remote", DATABASE, "HEAD"], capture_output=True, timeout=30).returncode == 0
    except subprocess.TimeoutExpired:
        reached = False
    if not reached:
        print(f"advisories: {DATABASE} is not reached from here; looked at {TABLE.name} ({head.split(';')[0][2:]})")
    elif DENY.exists():
        sys.exit(subprocess.run([DENY, "--locked", "check", "--hide-inclusion-graph", "advisories"], cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
