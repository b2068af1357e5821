#!/usr/bin/env python3
"""Writes residuals.csv beside times.csv: observed less computed travel times.

    residuals.py FOLDER catalogue.xml

What is observed are the arrivals of the origins in QuakeML 1.2, of which quakeml.py made the
events. Each line has the row of the matrix, so that matrix and residuals are a tomography's
equations. Needs Python alone.
"""

import csv
import sys
import xml.etree.ElementTree as ElementTree
from datetime import datetime, timezone
from pathlib import Path

from quakeml import BED, chosen_origin, name_of, value

# Names of the same ray. Arrivals of other phases are left out, and counted.
SAME = {"PKIKP": "PKPdf", "p": "P", "s": "S", "Pn": "P", "Sn": "S"}


def seconds(text):
    time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp()


def observations(path):
    """Event, station and phase, and the travel time, of every arrival that has a pick."""
    for event in ElementTree.parse(path).iter(f"{BED}event"):
        origin = chosen_origin(event)
        start = None if origin is None else value(origin, "time")
        if start is None:
            continue
        picks = {pick.get("publicID"): pick for pick in event.findall(f"{BED}pick")}
        for arrival in origin.findall(f"{BED}arrival"):
            pick = picks.get((arrival.findtext(f"{BED}pickID") or "").strip())
            stream = None if pick is None else pick.find(f"{BED}waveformID")
            time = None if pick is None else value(pick, "time")
            if stream is None or time is None:
                continue
            station = f"{stream.get('networkCode')}.{stream.get('stationCode')}"
            phase = (arrival.findtext(f"{BED}phase") or "").strip()
            key = (name_of(event), station, SAME.get(phase, phase))
            yield key, seconds(time) - seconds(start)


def main():
    if len(sys.argv) != 3:
        sys.exit("residuals.py: the arguments are FOLDER and a QuakeML file")
    folder = Path(sys.argv[1])
    try:
        with open(folder / "times.csv", newline="") as file:
            rays = {
                (ray["event"], ray["station"], ray["phase"]): ray for ray in csv.DictReader(file)
            }
        observed = list(observations(sys.argv[2]))
    except (OSError, ElementTree.ParseError, ValueError, KeyError) as error:
        sys.exit(f"residuals.py: {error}")
    found = [(rays[key], time) for key, time in observed if key in rays]
    found.sort(key=lambda pair: int(pair[0]["ray"]))
    with open(folder / "residuals.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["ray", "event", "station", "phase", "observed_s", "computed_s", "residual_s"]
        )
        for ray, time in found:
            computed = float(ray["time_s"])
            row = [ray[name] for name in ("ray", "event", "station", "phase")]
            writer.writerow([*row, f"{time:.4f}", f"{computed:.4f}", f"{time - computed:.4f}"])
    print(f"{len(found)} residuals; {len(observed) - len(found)} arrivals without a ray")


if __name__ == "__main__":
    main()
