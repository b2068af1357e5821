#!/usr/bin/env python3
"""Whether a figure that stands in several documents has one value.

FACTS names the figures and how sentences say them. A figure whose values differ, or that fewer than
two lines have, is printed with its lines; the status is 1 then. Who writes a figure into a second
document adds it here."""

import pathlib
import re
import subprocess
import sys

# Blanks in a pattern stand for any white space, as lines break anywhere.
FACTS = {
    "how long a tunnel waits for its network": [
        r"up to `resume` \((\w+ minutes)\)",
        r"dials again,? for up to (\w+ minutes)",
        r'resume = "(\d+min)"',
    ],
    "how long a node waits for its gateway's host": [
        r"hears? nothing (?:from its gateway's host )?for (\d+ s)",
    ],
    "delivery ports": [r"delivery ports \((\d+-\d+)\)", r'delivery_ports = "(\d+-\d+)"'],
    "connections that a relay carries": [r"carries at most (\d+) connections"],
    "answers that a member does not read": [r"does not read (?:take|wait in) (\d+ MiB)"],
    "how long a site's nodes may idle": [
        r"`--idle (\d+min)`",
        r"have waited for the others for so long, and ask again \| (\d+min)",
    ],
    "how long allocations may take": [r"`--wait (\d+h)`", r"have not begun after so long \[default: (\d+h)\]"],
    "ended jobs that are kept": [r"Of ended jobs, (\d+) are kept", r"(\d+) ended jobs at most"],
    "days for which ended jobs are kept": [r"are kept, each for (\d+ days)", r"at most, each for (\d+ days)"],
    "how long a gateway's host must refuse": [
        r"its host has refused\s+connections for (\d+ s)", r"the host has refused connections for (\d+ s)",
        r"it has refused connections for (\d+ s)", r"its host has refused every connection for (\d+ s)",
    ],
    "the Slurm that was tested": [r"Debian's (?:Slurm )?(\d+\.\d+)"],
}
NUMBERS = {"five": "5", "ten": "10", "minutes": "min", "minute": "min"}


def documents() -> list[pathlib.Path]:
    listed = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs/*.md", "configs/*.toml"]
    command = ["git", "ls-files", *listed]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return [pathlib.Path(name) for name in names]


def plain(text: str) -> str:
    """A text with one blank between words, without marks of comments. The length stays."""
    return re.sub(r"\n(#| {2})", lambda match: " " * len(match[0]), text).replace("\n", " ")


def value(text: str) -> str:
    return "".join(NUMBERS.get(word, word) for word in text.split())


def main() -> int:
    texts = {path: path.read_text(encoding="utf-8") for path in documents()}
    status = 0
    for fact, patterns in FACTS.items():
        found = []
        for pattern in patterns:
            expression = re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE)
            for path, text in texts.items():
                for match in expression.finditer(plain(text)):
                    line = 1 + text.count("\n", 0, match.start(1))
                    found.append((value(match[1]), f"{path}:{line}"))
        if len(found) < 2 or len({one for one, _ in found}) > 1:
            status = 1
            places = ", ".join(f"{one} ({place})" for one, place in found) or "no line says it"
            print(f"{fact}: {places}")
    return status


sys.exit(main())
