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


def name_of(event):
    """The end of the id is what tells events of one agency apart; ray2mesh keeps 31 bytes."""
    return event.get("publicID", "")[-31:]


def chosen_origin(event):
    """The preferred origin, or the first; None if there is none."""
    preferred = (event.findtext(f"{BED}preferredOriginID") or "").strip()
    origins = event.findall(f"{BED}origin")
    origins.sort(key=lambda origin: origin.get("publicID") != preferred)
    return origins[0] if origins else None


def rows(path):
    for event in ElementTree.parse(path).iter(f"{BED}event"):
        origin = chosen_origin(event)
        names = ("time", "latitude", "longitude", "depth")
        found = [None if origin is None else value(origin, name) for name in names]
        if None in found:
            lacking = f"event {event.get('publicID')} has no origin with time and place"
            print(f"quakeml.py: {path}: {lacking}: left out", file=sys.stderr)
            continue
        time, latitude, longitude, depth = found
        # QuakeML has metres.
        yield [name_of(event), time, latitude, longitude, f"{float(depth) / 1000:g}"]


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
