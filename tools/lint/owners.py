#!/usr/bin/env python3
"""Whether ARCHITECTURE.md counts the methods of the gateway's owners as they are, and no owner has
more that are its own than AT_MOST.

A method counts that code outside the owner's folder may call, tests apart. Those that owners have
in common are counted, too, but are not its own. Prints what differs; the status is 1 then."""

import pathlib
import re
import sys

SOURCES = pathlib.Path("crates/gateway/src")
# The struct of each folder.
OWNERS = {
    "tunnels": "Tunnels",
    "membership": "Membership",
    "site": "SiteSide",
    "traversal": "Traversal",
    "telemetry": "Telemetry",
    "commands": "Commands",
    "lifecycle": "Lifecycle",
}
COMMON = {
    "new", "on_ready", "on_deadline", "poll_event", "keep", "inherit", "descriptors",
    "note_changes", "write_down", "written_down",
}
AT_MOST = 10
METHOD = re.compile(r"((?:    #\[.*\]\n)*)    pub(?:\(crate\))? (?:const )?fn (\w+)")


def methods(folder: str, owner: str) -> set[str]:
    """Names of the methods that code outside the folder may call."""
    names = set()
    for path in (SOURCES / folder).rglob("*.rs"):
        for block in re.findall(rf"^impl {owner} \{{\n(.*?)^\}}", path.read_text(), re.M | re.S):
            found = METHOD.findall(block)
            names.update(name for attributes, name in found if "cfg(test)" not in attributes)
    return names


def main() -> int:
    text = pathlib.Path("ARCHITECTURE.md").read_text()
    faults = []
    for folder, owner in OWNERS.items():
        names = methods(folder, owner)
        own = names - COMMON
        if len(own) > AT_MOST:
            faults.append(f"{folder}: {len(own)} methods of its own: {', '.join(sorted(own))}")
        row = re.search(rf"^\| `{folder}` \|[^|]*\| ([^|]*) \|", text, re.M)
        count = f"{len(names)}, {len(own)} of its own"
        if not row or row[1] != count:
            said = row[1] if row else "nothing"
            faults.append(f"ARCHITECTURE.md: {folder}: it says {said}, there are {count}")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
