#!/usr/bin/env python3
"""Writes reference.csv: travel times that the C library is compared with.

Rows of source "taup" are computed by obspy's TauP, all arrivals of each phase. Rows of source
"table" are first arrivals of the published tables of ak135 (Kennett, 1995), to 0.01 s, which obspy
ships for its own tests.

    pip install obspy==1.5.1
    tests/examples/ray2mesh/reference.py > tests/examples/ray2mesh/reference.csv

P and S have those that leave the source upwards, which obspy
calls p and s; PKP has obspy's PKP and PKIKP.
"""

from pathlib import Path

import obspy
from obspy.taup import TauPyModel

PHASES = {
    "P": ["P", "p"],
    "S": ["S", "s"],
    "PcP": ["PcP"],
    "ScS": ["ScS"],
    "PKP": ["PKP", "PKIKP"],
    "pP": ["pP"],
    "sS": ["sS"],
}
# Some lie exactly on a discontinuity.
DEPTHS_KM = {
    "iasp91": [0, 20, 33, 35, 150, 300, 410, 600],
    "ak135": [0, 35, 100, 611, 660, 700],
    "prem": [100, 400, 500],
}


def distances(phase):
    """Denser where triplications are, and where PKP has its caustic."""
    if phase == "PKP":
        return [120, 130, 140, 143, 145, 147, 149, 151, 153, 155, 160, 165, 170, 175, 179]
    if phase in ("PcP", "ScS"):
        return list(range(5, 95, 10))
    return [1, 2, 5, 6, 10, *range(14, 32), 35, 40, 50, 60, 70, 80, 85, 90, 95]


TABLES = {
    "P": ["ak135_P_shallow.txt", "ak135_P_deep.txt"],
    "S": ["ak135_S_shallow.txt", "ak135_S_deep.txt"],
    "PcP": ["ak135_PcP.txt"],
    "ScS": ["ak135_ScS.txt"],
    "PKPdf": ["ak135_PKIKP.txt"],
}


def tables():
    """A line of depths; then lines of a distance, and minutes and seconds for each depth."""
    folder = Path(obspy.__file__).parent / "taup/tests/data/TauP_test_data"
    for phase, names in TABLES.items():
        for name in names:
            lines = [[float(word) for word in line.split()] for line in open(folder / name)]
            for column, depth in enumerate(lines[0]):
                for row in lines[1:]:
                    minutes, seconds = row[1 + 2 * column : 3 + 2 * column]
                    # 0 stands for no such arrival. Beyond 95 degrees the tables of P and S go on
                    # with waves that are diffracted at the core.
                    if row[0] % 5 or not minutes + seconds or (phase in "PS" and row[0] > 95):
                        continue
                    yield f"ak135,{phase},{depth:g},{row[0]:g},{60 * minutes + seconds:.2f}"


def main():
    print(f"# obspy {obspy.__version__}; made by reference.py")
    print("source,model,phase,depth_km,distance_deg,time_s,p_s_per_rad")
    for row in tables():
        print(f"table,{row},0")
    for name, depths in DEPTHS_KM.items():
        model = TauPyModel(name)
        for depth in depths:
            for phase, names in PHASES.items():
                for degrees in distances(phase):
                    if depth == 0 and phase in ("pP", "sS"):
                        continue
                    for arrival in model.get_travel_times(depth, degrees, names):
                        print(
                            f"taup,{name},{phase},{depth},{degrees},"
                            f"{arrival.time:.4f},{arrival.ray_param:.3f}"
                        )


if __name__ == "__main__":
    main()
