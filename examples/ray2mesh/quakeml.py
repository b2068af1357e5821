#!/usr/bin/env python3
"""Writes a catalogue in QuakeML 1.2 as the CSV that ray2mesh reads.

    quakeml.py catalogue.xml > events.csv

Of an event it takes the preferred origin, or the first. Needs Python alone.
"""

import csv
import sys
import xml.etree.ElementTree as ElementTree

BED = "{http://quakeml.org/xmlns/bed/1.2}"


def value(element, name):
    found = element.find(f"{BED}{name}/{BED}value")
    return None if found is None or not found.text else found.text.strip()


def rows(path):
    for event in ElementTree.parse(path).iter(f"{BED}event"):
        name = event.get("publicID", "")
        origins = event.findall(f"{BED}origin")
        preferred = (event.findtext(f"{BED}preferredOriginID") or "").strip()
        # A preferred origin that is not in the file leaves the first one.
        origins.sort(key=lambda origin: origin.get("publicID") != preferred)
        found = (
            [value(origins[0], key) for key in ("time", "latitude", "longitude", "depth")]
            if origins
            else []
        )
        if not found or None in found:
            print(
                f"quakeml.py: {path}: event {name} has no origin with time and place: left out",
                file=sys.stderr,
            )
            continue
        time, latitude, longitude, depth = found
        # QuakeML has metres; an id ends in what tells events of one agency apart.
        yield [name[-31:], time, latitude, longitude, f"{float(depth) / 1000:g}"]


def main():
    if len(sys.argv) != 2:
        sys.exit("quakeml.py: the argument is a QuakeML file")
    try:
        events = list(rows(sys.argv[1]))
    except (OSError, ElementTree.ParseError, ValueError) as error:
        sys.exit(f"quakeml.py: {sys.argv[1]}: {error}")
    if not events:
        sys.exit(f"quakeml.py: {sys.argv[1]}: no events of QuakeML 1.2")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["id", "time", "latitude", "longitude", "depth"])
    writer.writerows(events)


if __name__ == "__main__":
    main()
