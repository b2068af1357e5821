#!/usr/bin/env python3
"""Whether what lies in a directory runs on other machines, from other directories.

    portable.py --glibc 2.28 DIRECTORY [PATH...]

Each ELF file below DIRECTORY may need versions of glibc's symbols up to the given one. A weak need
counts, too: few linkers mark it as weak, and ld.so refuses a file whose unmarked needs it cannot
meet. A file may need no other library than glibc's own and one beside it, and have neither RPATH
nor RUNPATH. No file may hold one of the PATHs, which are those of the machine that built it. Every
fault is printed; with one, the status is 1."""

import argparse
import pathlib
import re
import subprocess
import sys

GLIBC = re.compile(r"(libc|libm|libdl|libpthread|librt|libutil|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d+")


def readelf(option: str, file: pathlib.Path) -> str:
    command = ["readelf", "--wide", option, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"})
    return done.stdout


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def version_faults(file: pathlib.Path, floor: str) -> list[str]:
    """The needs that the floor does not meet. `readelf -V` has lines such as
    `0x0010: Name: GLIBC_2.34  Flags: WEAK  Version: 4`."""
    faults = []
    for name, flags in re.findall(r"Name: (\S+) +Flags: (.*?) +Version:", readelf("--version-info", file)):
        glibc = re.fullmatch(r"GLIBC_([\d.]+)", name)
        if not glibc or numbers(glibc[1]) > numbers(floor):
            how = "weakly needs" if "WEAK" in flags else "needs"
            faults.append(f"{how} {name}; GLIBC_{floor} is the newest that it may")
    return faults


def dynamic_faults(file: pathlib.Path) -> list[str]:
    faults = []
    for kind, value in re.findall(r"\((NEEDED|RPATH|RUNPATH)\).*\[(.*)\]", readelf("--dynamic", file)):
        if kind != "NEEDED":
            faults.append(f"has {kind} {value}, which is right in one directory alone")
        elif not GLIBC.fullmatch(value) and not (file.parent / value).is_file():
            faults.append(f"needs {value}, which is neither glibc's nor beside it")
    return faults


def faults(file: pathlib.Path, floor: str, paths: list[str]) -> list[str]:
    content = file.read_bytes()
    # Not what only ends so (~/causeway), or goes on (/home/me of /home/mendel).
    held = (path for path in paths if re.search(rb"(?<![\w.~-])" + re.escape(path.encode()) + rb"(?![\w-])", content))
    found = [f"holds the path {path}" for path in held]
    if content.startswith(b"\x7fELF"):
        found += version_faults(file, floor) + dynamic_faults(file)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Whether files run on other machines.")
    parser.add_argument("--glibc", required=True, metavar="VERSION", help="the newest that may be needed")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="what no file may hold")
    asked = parser.parse_args()
    files = [file for file in sorted(asked.directory.rglob("*")) if file.is_file() and not file.is_symlink()]
    elves = sum(file.open("rb").read(4) == b"\x7fELF" for file in files)
    found = [(file, fault) for file in files for fault in faults(file, asked.glibc, asked.paths)]
    for file, fault in found:
        print(f"{file.relative_to(asked.directory)}: {fault}", file=sys.stderr)
    if not elves:
        print(f"portable.py: no program or library is below {asked.directory}", file=sys.stderr)
        return 1
    if found:
        return 1
    print(f"portable: {elves} programs and libraries need at most glibc {asked.glibc}, and no path of this machine")
    return 0


if __name__ == "__main__":
    sys.exit(main())
