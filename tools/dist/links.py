#!/usr/bin/env python3
"""links.py TREE: leaves of each link that leads out of a tree of documents its words alone.

The tar has the documents, and neither the sources nor the results that they also link to.
"""

import pathlib
import re
import sys

LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")


def within(document: pathlib.Path, target: str) -> bool:
    """Whether a link's target is elsewhere on the web, in the same document or in the tree."""
    path = target.split("#")[0]
    return not path or "://" in target or (document.parent / path).exists()


def kept(document: pathlib.Path, text: str) -> str:
    """The text with those links that lead somewhere."""
    return LINK.sub(lambda link: link[0] if within(document, link[2]) else link[1], text)


def main() -> None:
    """Rewrites the documents in place."""
    for document in sorted(pathlib.Path(sys.argv[1]).rglob("*.md")):
        text = document.read_text()
        document.write_text(kept(document, text))


if __name__ == "__main__":
    main()
