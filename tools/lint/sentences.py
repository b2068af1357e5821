#!/usr/bin/env python3
"""Whether documentation begins with a subject, and reads as English does: the first sentence of
each doc comment in Rust, of each comment in C and of each paragraph of a document.

A line that begins with "Of", "Whom" or "What is" leaves the reader to guess what it speaks of. So
does a doc comment that is one short phrase behind a preposition, such as "By site." Noun phrases
("The node to start on.") are fine. Turns that no native writer uses are refused in every
line. Prints FILE:LINE: BEGINNING; the status is 1 then."""

import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

HEADLESS = re.compile(
    r"(Of|Whom|Whose|(That|Those) of|What (is|are)|To be|(To|By|For|From|In|On|With) (whom|whose|which))\b"
)
STILTED = re.compile(
    r"\b(such an? one|such ones|(of|to|from) which each|that is said|(what|who) (lies|lie) in|who has (come|said)|"
    r"than one would expect|as many a|be it (that|said)|is (it )?said so|wherefore|thereof|therein|"
    r"(none|nothing) of the kind|how (many|much|long|far) [^.?]{3,40}, (the|a|an|its) \w+ (says|say|tells|may say))\b"
)
# So few words behind a preposition have neither subject nor verb.
PHRASE_WORDS = 4
PREPOSITION = re.compile(r"(As|At|After|Before|Between|By|For|From|In|On|Through|To|Until|With|Without)\b")

RUST = re.compile(r"\s*(///|//!) ?(.*)")
C = re.compile(r"\s*/\*+ ?(.*)")
# Lines of a document that hold no text of a paragraph: tables, headings, HTML.
NO_TEXT = re.compile(r"\||#|<|\s{4,}")
ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")


def rust(lines: list[str]) -> Iterator[tuple[int, str]]:
    """First line and text of each doc comment's first paragraph."""
    last = None
    for number, line in enumerate(lines):
        match = RUST.match(line)
        if match and match[1] != last:
            words = []
            for other in lines[number:]:
                more = RUST.match(other)
                if not more or more[1] != match[1] or not more[2]:
                    break
                words.append(more[2])
            yield number + 1, " ".join(words)
        last = match and match[1]


def c(lines: list[str]) -> Iterator[tuple[int, str]]:
    """First line and text of each comment, as far as it stands on that line."""
    for number, line in enumerate(lines):
        if match := C.match(line):
            yield number + 1, match[1].removesuffix("*/").strip()


def markdown(lines: list[str]) -> Iterator[tuple[int, str]]:
    """First line of each paragraph and item."""
    in_fence, is_inside = False, False
    for number, line in enumerate(lines):
        if line.lstrip().startswith("```"):
            in_fence, is_inside = not in_fence, False
        elif in_fence or not line.strip() or NO_TEXT.match(line) and not ITEM.match(line):
            is_inside = is_inside and bool(line.strip())
        elif not is_inside or ITEM.match(line):
            yield number + 1, ITEM.sub("", line, count=1)
            is_inside = True


KINDS = {".rs": rust, ".c": c, ".h": c, ".md": markdown}


def is_headless(text: str, suffix: str) -> bool:
    if HEADLESS.match(text):
        return True
    sentence = re.split(r"[.:;](?= |$)", text)[0]
    return suffix == ".rs" and PREPOSITION.match(text) is not None and len(sentence.split()) <= PHRASE_WORDS


def main() -> int:
    command = ["git", "ls-files", *(f"*{suffix}" for suffix in KINDS)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    found = 0
    for path in map(pathlib.Path, listed.stdout.split()):
        if not path.exists():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if turn := STILTED.search(line):
                print(f"{path}:{number}: not English: {turn[0]}")
                found += 1
        for number, text in KINDS[path.suffix](path.read_text(encoding="utf-8").splitlines()):
            if is_headless(text, path.suffix):
                print(f"{path}:{number}: no subject: {text[:80]}")
                found += 1
    return found > 0


if __name__ == "__main__":
    sys.exit(main())
