#!/usr/bin/env python3
"""Writes others.csv: travel times of programs that share no code with TauP or with the C library.

Rows of source "cake" are all arrivals of pyrocko's cake. Rows of source "ttimes" are of the Fortran
program ttimes, which came with iasp91 and ak135; obspy ships its listings for its own tests. Rows
of source "fine" are TauP's again, at pP's triplication, with its tolerance of the ray parameter set
to 1e-7 s/rad in place of its default.

    pip install obspy==1.5.1 pyrocko==2026.6.2
    tests/examples/ray2mesh/reference_others.py > tests/examples/ray2mesh/others.csv
"""

import io
import re
from pathlib import Path

import obspy
import pyrocko
from obspy.taup import TauPyModel
from pyrocko import cake

MODELS = Path(__file__).resolve().parents[2] / "ray2mesh/data"
PHASES = {
    "P": ["P", "p"],
    "S": ["S", "s"],
    "PcP": ["PcP"],
    "ScS": ["ScS"],
    "PKP": ["PKP", "PKIKP"],
    "pP": ["pP"],
    "sS": ["sS"],
}
DEPTHS_KM = {"iasp91": [0, 33, 600], "ak135": [0, 611], "prem": [500]}


def distances(phase):
    if phase == "PKP":
        return [130, 145, 150, 155, 160, 165, 170, 175]
    if phase in ("PcP", "ScS"):
        return [5, 25, 45, 65, 85]
    return [2, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90]


def cake_model(name):
    """The .tvel file in the form that cake reads. The speed of S says where the outer core is."""
    lines, before = [], None
    for line in open(MODELS / f"{name}.tvel").read().splitlines()[2:]:
        if not line.strip():
            continue
        depth, p, s, density = (float(word) for word in line.split()[:4])
        if before and before[0] == depth and (before[1] == 0) != (s == 0):
            lines.append("outer-core" if s == 0 else "inner-core")
        elif before and before[0] == depth and p > 7.9 and "mantle" not in lines:
            lines.append("mantle")
        lines.append(f"{depth} {p} {s} {density}")
        before = depth, s
    reader = cake.read_nd_model_fh(io.StringIO("\n".join(lines)))
    return cake.LayeredModel.from_scanlines(reader)


def rows_of_cake():
    for name, depths in DEPTHS_KM.items():
        model = cake_model(name)
        for depth in depths:
            for phase, names in PHASES.items():
                if depth == 0 and phase in ("pP", "sS"):
                    continue
                phases = [one for word in names for one in cake.PhaseDef.classic(word)]
                arrivals = model.arrivals(distances(phase), phases, zstart=depth * 1000.0)
                for ray in sorted(arrivals, key=lambda ray: (ray.x, ray.t)):
                    yield f"cake,{name},{phase},{depth},{ray.x:g},{ray.t:.4f},{ray.p:.3f}"


def rows_of_ttimes():
    """The tables print a distance in the first row of each block only."""
    folder = Path(obspy.__file__).parent / "taup/tests/data"
    wanted = {"P": "P", "S": "S", "PcP": "PcP", "ScS": "ScS", "pP": "pP", "sS": "sS"}
    wanted |= {"PKPab": "PKPab", "PKPbc": "PKPbc", "PKPdf": "PKPdf"}
    for name in ("iasp91", "ak135"):
        depth = degrees = None
        for line in open(folder / f"sample_ttimes_{name}.lst"):
            if found := re.match(r"\s*Source [Dd]epth[^:]*:\s*(\S+)", line):
                depth = float(found[1])
            words = line.split()
            if len(words) in (7, 8) and re.fullmatch(r"\d+", words[-7]):
                degrees = float(words[0]) if len(words) == 8 else degrees
                code, time, slope = words[-6], float(words[-5]), float(words[-3])
                if code in wanted:
                    p = slope * 57.29577951
                    yield f"ttimes,{name},{wanted[code]},{depth:g},{degrees:g},{time:.3f},{p:.3f}"


def rows_of_fine_taup():
    for name in ("iasp91", "ak135"):
        for depth in (100, 150):
            for degrees in (19, 20, 21):
                for ray in TauPyModel(name).get_travel_times(
                    depth, degrees, ["pP"], ray_param_tol=1e-7
                ):
                    yield f"fine,{name},pP,{depth},{degrees},{ray.time:.4f},{ray.ray_param:.3f}"


def main():
    print(f"# pyrocko {pyrocko.__version__}, obspy {obspy.__version__}; made by reference_others.py")
    print("source,model,phase,depth_km,distance_deg,time_s,p_s_per_rad")
    for rows in (rows_of_cake, rows_of_ttimes, rows_of_fine_taup):
        for row in rows():
            print(row)


if __name__ == "__main__":
    main()
