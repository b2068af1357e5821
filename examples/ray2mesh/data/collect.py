#!/usr/bin/env python3
"""Writes what is here from what obspy ships: models, and earthquakes and stations of its tests.

pip install obspy==1.5.1
examples/ray2mesh/data/collect.py
"""

import csv
import warnings
from pathlib import Path

import obspy

HERE = Path(__file__).parent
SOURCE = Path(obspy.__file__).parent
# Files of earthquakes above magnitude 5 that are real, as those of a catalogue are.
CATALOGUES = [
    "core/tests/data/events_longitude_wrap.zmap",
    "io/cmtsolution/tests/data/CMTSOLUTION",
    "io/cmtsolution/tests/data/MULTIPLE_EVENTS",
    "io/csv/tests/data/events.txt",
    "io/ndk/tests/data/C200604092050A.ndk",
    "io/ndk/tests/data/multiple_events.ndk",
    "io/nied/tests/data/FNETMTCATALOG",
    "io/pde/tests/data/mchedr.dat",
]
# Real stations that are far from each other.
STATIONS = (
    """1T.MONN AI.ESPZ AK.BWN AU.MEEK AZ.BZN BK.CMB BN.LPW BO.TTO CL.AIO DK.BSD EB.EBR G.CAN G.SPB
GR.WET II.COCO IU.ANMO IU.ANTO IU.ULN IV.LATE NL.HGN NZ.CHIT NZ.DCZ PR.CTN1 SL.LJU TA.034A TA.857A
TA.A04A TM.SKLT TR.ALNG UP.BACU""".split()
)


def events():
    found = {}
    for name in CATALOGUES:
        for event in obspy.read_events(SOURCE / name):
            origin = event.preferred_origin() or event.origins[0]
            magnitude = event.preferred_magnitude() or event.magnitudes[0]
            row = (
                origin.time,
                origin.latitude,
                origin.longitude,
                origin.depth / 1000,
                magnitude.mag,
            )
            if row[4] >= 5:
                found.setdefault((str(row[0]), row[1]), row)
    for time, latitude, longitude, depth, magnitude in sorted(found.values()):
        name = time.strftime("%Y%m%d-%H%M%S")
        yield [
            name,
            time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            latitude,
            longitude,
            round(depth, 3),
            magnitude,
        ]


def stations():
    found = {}
    for path in sorted(SOURCE.glob("**/data/**/*")):
        if path.is_dir() or path.stat().st_size > 5_000_000:
            continue
        try:
            inventory = obspy.read_inventory(path)
        except Exception:
            # Most files there are no inventories, and each format says so in its own way.
            continue
        for network in inventory:
            for station in network:
                # Files of responses alone have no place.
                if station.latitude or station.longitude:
                    found.setdefault(f"{network.code}.{station.code}", station)
    for name in STATIONS:
        network, code = name.split(".")
        yield [network, code, found[name].latitude, found[name].longitude]


def models():
    """Copies of two models; PREM without the lines that name its boundaries."""
    for name in ("iasp91.tvel", "ak135.tvel"):
        (HERE / name).write_text((SOURCE / "taup/data" / name).read_text())
    lines = (SOURCE / "taup/data/prem.nd").read_text().splitlines(keepends=True)
    numbers = [line for line in lines if len(line.split()) >= 4]
    (HERE / "prem.tvel").write_text(
        "PREM - P, isotropic, without ocean\nPREM - S\n" + "".join(numbers)
    )


def write(name, header, rows):
    with open(HERE / name, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    models()
    write("events.csv", ["id", "time", "latitude", "longitude", "depth", "mag"], events())
    write("stations.csv", ["network", "station", "latitude", "longitude"], stations())
