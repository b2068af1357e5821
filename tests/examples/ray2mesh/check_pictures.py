#!/usr/bin/env python3
"""check_pictures.py SOURCE FOLDER: what pictures.py made of FOLDER is what the matrix says; and
quakeml.py and residuals.py read a catalogue."""

import subprocess
import sys
import tempfile
from pathlib import Path

import meshio
import netCDF4
import numpy

QUAKEML = """<?xml version="1.0"?>
<q:quakeml xmlns="http://quakeml.org/xmlns/bed/1.2" xmlns:q="http://quakeml.org/xmlns/quakeml/1.2">
<eventParameters publicID="smi:x/1">
<event publicID="smi:x/event/a"><preferredOriginID>smi:x/o2</preferredOriginID>
<origin publicID="smi:x/o1"><time><value>2016-01-01T00:00:00Z</value></time>
<latitude><value>1</value></latitude><longitude><value>2</value></longitude>
<depth><value>3</value></depth></origin>
<origin publicID="smi:x/o2"><time><value>2016-01-01T00:00:01Z</value></time>
<latitude><value>-10.5</value></latitude><longitude><value>160</value></longitude>
<depth><value>35500</value></depth>
<arrival publicID="smi:x/r1"><pickID>smi:x/p1</pickID><phase>PKIKP</phase></arrival>
<arrival publicID="smi:x/r2"><pickID>smi:x/p2</pickID><phase>S</phase></arrival>
<arrival publicID="smi:x/r3"><pickID>smi:x/p3</pickID><phase>P</phase></arrival></origin>
<pick publicID="smi:x/p1"><time><value>2016-01-01T00:20:01.5Z</value></time>
<waveformID networkCode="GR" stationCode="WET"/></pick>
<pick publicID="smi:x/p2"><time><value>2016-01-01T00:09:00</value></time>
<waveformID networkCode="GR" stationCode="WET"/></pick></event>
<event publicID="smi:x/event/b"/>
</eventParameters></q:quakeml>
"""


def files_have_what_the_matrix_says(folder):
    with open(folder / "matrix.mtx") as file:
        rows = [line.split() for line in file if not line.startswith("%")]
    cells = int(rows[0][1])
    column = numpy.array([int(row[1]) - 1 for row in rows[1:]])
    length = numpy.bincount(column, [float(row[2]) for row in rows[1:]], cells)
    rays = numpy.bincount(column, minlength=cells)
    with netCDF4.Dataset(folder / "mesh.nc") as file:
        shape = tuple(len(file.dimensions[name]) for name in ("depth", "latitude", "longitude"))
        assert shape == (32, 18, 36), shape
        assert numpy.array_equal(file["rays"][:].ravel(), rays)
        assert numpy.allclose(file["length"][:].ravel(), length, rtol=1e-12)
        assert list(file["depth_bounds"][0]) == [0, 200] and file["depth_bounds"][-1, 1] == 6371
    mesh = meshio.read(folder / "mesh.vtu")
    assert numpy.array_equal(mesh.cell_data["rays"][0], rays[rays > 0])
    r = numpy.linalg.norm(mesh.points, axis=1)
    assert abs(r.max() - 6371) < 1e-9
    corners = mesh.points[mesh.cells[0].data]
    a, b, c = (corners[:, i] - corners[:, 0] for i in (1, 3, 4))
    assert (numpy.einsum("ij,ij->i", numpy.cross(a, b), c) >= 0).all(), "a cell is inside out"
    for name in ("map.png", "section.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG"), name


def residuals_are_observed_less_computed(source):
    with tempfile.TemporaryDirectory() as folder:
        catalogue = Path(folder, "catalogue.xml")
        catalogue.write_text(QUAKEML)
        rays = "7,smi:x/event/a,GR.WET,PKPdf,125.0,1199.25,1.9,12000.0\n"
        header = "ray,event,station,phase,distance_deg,time_s,p_s_per_deg,length_km\n"
        Path(folder, "times.csv").write_text(header + rays)
        command = [sys.executable, source / "residuals.py", folder, catalogue]
        run = subprocess.run(command, capture_output=True, text=True)
        # Of three arrivals one has no pick, and one no ray.
        assert run.stdout == "1 residuals; 1 arrivals without a ray\n", run
        lines = Path(folder, "residuals.csv").read_text().splitlines()
        assert lines[1:] == ["7,smi:x/event/a,GR.WET,PKPdf,1200.5000,1199.2500,1.2500"], lines
        run = subprocess.run([*command[:3], __file__], capture_output=True, text=True)
        assert run.returncode == 1 and run.stderr.startswith("residuals.py: "), run


def a_catalogue_in_quakeml_is_read(source):
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(QUAKEML)
        file.flush()
        run = subprocess.run(
            [sys.executable, source / "quakeml.py", file.name], capture_output=True, text=True
        )
    lines = run.stdout.splitlines()
    assert lines == [
        "id,time,latitude,longitude,depth",
        "smi:x/event/a,2016-01-01T00:00:01Z,-10.5,160,35.5",
    ], run
    assert "smi:x/event/b has no origin" in run.stderr, run.stderr
    run = subprocess.run(
        [sys.executable, source / "quakeml.py", __file__], capture_output=True, text=True
    )
    assert run.returncode == 1 and run.stderr.startswith("quakeml.py: "), run


if __name__ == "__main__":
    a_catalogue_in_quakeml_is_read(Path(sys.argv[1]))
    residuals_are_observed_less_computed(Path(sys.argv[1]))
    files_have_what_the_matrix_says(Path(sys.argv[2]))
