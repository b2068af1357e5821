#!/usr/bin/env python3
"""Whether modules of a crate import each other in circles, of two modules or more.

Modules of one folder are compared with each other, each with all that lies below it: what a
folder's own file and its parts make of each other is no circle. An edge is a `use`, or a path in
code, as `crate::`, `super::`, `self::` or the name of a part says it. Tests do not count. Prints
each circle; the status is 1 then."""

import pathlib
import re
import sys

PATH = re.compile(r"(?<![:\w])(\w+)((?:::\w+)*)(?:::(\{))?")
TEXT = re.compile(r"//[^\n]*|r(#*)\".*?\"\1|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'", re.DOTALL)


# Of a module in its crate.
Place = tuple[str, ...]


def without_tests(text: str) -> str:
    """The code of a file: no comments, no texts, nothing that is compiled for tests alone."""
    text = TEXT.sub("", text)
    while (found := re.search(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod \w+\s*([{;])", text)):
        end = found.end()
        depth = found[1] == "{"
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + text[end:]
    return text


def braces(text: str, at: int) -> list[str]:
    """The paths in the braces that begin at a place: {a, b::{c, d}} is a, b::c and b::d."""
    paths, word, at = [], "", at + 1
    while text[at] != "}":
        if text[at] == "{":
            paths += [word.strip() + inner for inner in braces(text, at)]
            word = ""
            depth = 1
            while depth:
                at += 1
                depth += {"{": 1, "}": -1}.get(text[at], 0)
        elif text[at] == ",":
            paths.append(word.strip())
            word = ""
        else:
            word += text[at]
        at += 1
    return [path for path in [*paths, word.strip()] if path]


def module(root: pathlib.Path, file: pathlib.Path) -> Place:
    """A file's place in its crate."""
    parts = file.relative_to(root).with_suffix("").parts
    return parts[:-1] if parts[-1] == "mod" else parts


def graph(root: pathlib.Path) -> dict[Place, set[Place]]:
    """Which module's file imports which, of one crate."""
    files = {module(root, file): file for file in root.rglob("*.rs") if file.stem != "tests"}
    edges: dict[Place, set[Place]] = {}
    for place, file in files.items():
        text = without_tests(file.read_text(encoding="utf-8"))
        found = edges.setdefault(place, set())
        for path in PATH.finditer(text):
            start = {"crate": (), "super": place[:-1], "self": place}.get(path[1], (*place, path[1]))
            words = [word for word in path[2].split("::") if word]
            if path[1] not in ("crate", "super", "self") and (start not in files or not path[2] and not path[3]):
                continue
            while words and words[0] == "super":
                start, words = start[:-1], words[1:]
            for rest in braces(text, path.end() - 1) if path[3] else [""]:
                whole = start + tuple(words) + tuple(word for word in rest.split("::") if word)
                while whole and whole not in files:
                    whole = whole[:-1]
                found.add(whole)
    return edges


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The sets of nodes that all reach each other."""

    def reached(start: str) -> set[str]:
        seen, todo = set(), [start]
        while todo:
            for node in edges.get(todo.pop(), ()):
                if node not in seen:
                    seen.add(node)
                    todo.append(node)
        return seen

    reach = {node: reached(node) for node in edges}
    found = {frozenset(other for other in reach[node] if node in reach.get(other, ())) for node in edges}
    return sorted(sorted(circle) for circle in found if len(circle) > 1)


def siblings(edges: dict[Place, set[Place]], folder: Place) -> dict[str, set[str]]:
    """Which modules of a folder import which others of it."""
    depth, found = len(folder), {}
    for place, others in edges.items():
        if place[:depth] == folder and len(place) > depth:
            own = found.setdefault(place[depth], set())
            own |= {other[depth] for other in others if other[:depth] == folder and len(other) > depth}
            own.discard(place[depth])
    return found


def main() -> int:
    wrong = 0
    for root in sorted(pathlib.Path("crates").glob("*/src")):
        edges = graph(root)
        for folder in sorted({place[:depth] for place in edges for depth in range(len(place))}):
            path = "/".join([str(root), *folder])
            for circle in circles(siblings(edges, folder)):
                print(f"{path}: a circle of imports: {', '.join(circle)}")
                wrong += 1
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
