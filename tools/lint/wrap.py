#!/usr/bin/env python3
"""Breaks the lines of Markdown files at 100 columns: tools/lint/wrap.py FILE... It changes no word.

Tables, code, headings and comments stay as they are. Links and code between backquotes are not
broken."""

import pathlib
import re
import sys

COLUMNS = 100
# Words, with the links and the code that they hold.
WORD = re.compile(r"(?:`[^`]*`|\[[^\]]*\]\([^)]*\)|[^\s`\[]|\[|`)+")
ITEM = re.compile(r"(\s*)([-*]|\d+\.)\s+(.*)")
# What a line must not begin with, or it would be an item or a heading.
NO_BEGIN = re.compile(r"[-+*#>]|\d+[.)]")


def fill(text: str, first: str, rest: str) -> list[str]:
    lines, line, is_empty = [], first, True
    for word in WORD.findall(text):
        if not is_empty and len(line) + 1 + len(word) > COLUMNS and not NO_BEGIN.fullmatch(word):
            lines.append(line)
            line, is_empty = rest, True
        line += word if is_empty else " " + word
        is_empty = False
    return lines + [line]


def wrap(text: str) -> str:
    found: list[str] = []
    words: list[str] = []
    indents, item, in_fence = ("", ""), None, False

    def end_paragraph() -> None:
        if words:
            found.extend(fill(" ".join(words), *indents))
            words.clear()

    for line in text.split("\n"):
        content, lead = line.strip(), len(line) - len(line.lstrip())
        if content.startswith("```"):
            in_fence = not in_fence
        is_item = ITEM.match(line) if item is not None or lead < 4 else None
        within = item if item is not None and lead >= item else 0
        is_code = in_fence or not words and not is_item and lead - within >= 4
        if not content or is_code or content.startswith(("```", "|", "#", "<!--")):
            end_paragraph()
            found.append(line.rstrip())
            item = None if content.startswith("#") and not is_code else item
        elif is_item:
            end_paragraph()
            first = is_item[1] + is_item[2] + " "
            item, indents = len(first), (first, " " * len(first))
            words.append(is_item[3])
        elif words:
            words.append(content)
        else:
            item = item if lead else None
            indents = (" " * (within if lead else 0),) * 2
            words.append(content)
    end_paragraph()
    return "\n".join(found)


def main() -> None:
    for path in map(pathlib.Path, sys.argv[1:]):
        text = path.read_text(encoding="utf-8")
        wrapped = wrap(text)
        assert wrapped.split() == text.split(), f"{path}: a word was lost"
        path.write_text(wrapped, encoding="utf-8")


if __name__ == "__main__":
    main()
