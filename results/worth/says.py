"""What README.md says, computed from the JSON files."""

import json

import figures
from figures import line

PROGRAMS = {
    "adds-openmpi": "`adds`, Open MPI",
    "adds-mpich": "`adds`, MPICH",
    "ray2mesh": "`ray2mesh`",
    "tsqr": "`tsqr`",
    "pdgeqrf": "`pdgeqrf`",
}


def texts():
    for name, label in PROGRAMS.items():
        found = json.loads((figures.place / f"{name}.json").read_text(encoding="utf-8"))
        needs, one_site = found["needs"], found["one_site"]
        trips, data, own = needs["trips"], needs["bytes"], needs["own_seconds"]
        link = found["link"]
        # A figure whose interval reaches 0 counts as 0.
        transfer = data["median"] * 8 / link["rate_bits_per_second"] if data["least"] > 0 else 0
        round_trip = link["round_trip_us"] / 1e6
        predicted = own + trips["median"] * round_trip + transfer
        longest = (one_site - own / 2 - transfer) / trips["median"] * 1e3
        waits = f"{trips['median']:.0f} ({trips['least']:.0f} to {trips['most']:.0f})"
        volume = f"{data['median'] / 1e6:.1f} MB" if data["least"] > 0 else "within the noise"
        times = [f"{value:.2f} s" for value in (one_site, own)]
        pair = f"{predicted:.2f} s, {found['measured']:.2f} s"
        yield line(label, *times, waits, volume, pair, f"{predicted - own / 2:.2f} s", f"{longest:.1f} ms")
