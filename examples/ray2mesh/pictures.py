#!/usr/bin/env python3
"""Makes mesh.nc (NetCDF), mesh.vtu (VTK), map.png and section.png of what ray2mesh wrote.

    pip install -r tools/setup/pypi-rays.txt
    examples/ray2mesh/pictures.py FOLDER [--events FILE --stations FILE] [--depth KM]
        [--longitude DEGREES]

The map shows the cells at a depth, the section a cut through the whole Earth along a meridian.
"""

import argparse
import csv
import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plot
import meshio
import netCDF4
import numpy
from matplotlib.colors import LogNorm

HEADER = re.compile(
    r"# radius (\S+) km; (\d+) depths of (\S+) km, "
    r"(\d+) latitudes of (\S+) degrees, (\d+) longitudes of (\S+) degrees"
)


class Mesh:
    """Rays and their length by depth, latitude and longitude, and the edges of cells."""

    def __init__(self, path):
        with open(path) as file:
            found = HEADER.fullmatch(file.readline().strip())
            if not found:
                raise SystemExit(f"pictures.py: {path}: no cells of ray2mesh")
            rows = numpy.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)
        radius, depth_step, latitude_step, longitude_step = (float(found[i]) for i in (1, 3, 5, 7))
        shape = tuple(int(found[i]) for i in (2, 4, 6))
        self.radius = radius
        self.depth = numpy.minimum(numpy.arange(shape[0] + 1) * depth_step, radius)
        self.latitude = -90 + numpy.arange(shape[1] + 1) * latitude_step
        self.longitude = -180 + numpy.arange(shape[2] + 1) * longitude_step
        cells = rows[:, 0].astype(int) - 1
        self.rays = numpy.zeros(shape, dtype="i8")
        self.length = numpy.zeros(shape)
        self.rays.flat[cells] = rows[:, 4].astype("i8")
        self.length.flat[cells] = rows[:, 5]

    def volume(self):
        r = self.radius - self.depth
        height = (r[:-1] ** 3 - r[1:] ** 3) / 3
        area = numpy.diff(numpy.sin(numpy.radians(self.latitude)))
        width = numpy.diff(numpy.radians(self.longitude))
        return height[:, None, None] * area[None, :, None] * width[None, None, :]

    def density(self):
        """Kilometres of rays in a million cubic kilometres."""
        return numpy.ma.masked_equal(self.length / self.volume() * 1e6, 0)


def write_netcdf(mesh, path):
    with netCDF4.Dataset(path, "w") as file:
        file.Conventions = "CF-1.8"
        file.title = "Seismic rays in the cells of a mesh, by ray2mesh"
        file.earth_radius_km = mesh.radius
        file.createDimension("bounds", 2)
        axes = {"depth": "km", "latitude": "degrees_north", "longitude": "degrees_east"}
        for name, units in axes.items():
            edges = getattr(mesh, name)
            file.createDimension(name, len(edges) - 1)
            axis = file.createVariable(name, "f8", (name,))
            axis.units, axis.bounds = units, f"{name}_bounds"
            axis[:] = (edges[:-1] + edges[1:]) / 2
            bounds = file.createVariable(f"{name}_bounds", "f8", (name, "bounds"))
            bounds[:] = numpy.stack([edges[:-1], edges[1:]], axis=1)
        file["depth"].positive = "down"
        file["latitude"].long_name = "geocentric latitude"
        for name, kind, units, text in (
            ("rays", "i8", "1", "number of rays through the cell"),
            ("length", "f8", "km", "length of all rays in the cell"),
        ):
            values = file.createVariable(name, kind, tuple(axes), zlib=True)
            values.units, values.long_name = units, text
            values[:] = getattr(mesh, name)


def write_vtk(mesh, path):
    """The cells that have rays, as hexahedra with corners on the sphere, in km."""
    used = numpy.argwhere(mesh.rays > 0)
    # The order of VTK_HEXAHEDRON: round the lower face, then round the upper one.
    steps = [(1, 0, 0), (1, 0, 1), (1, 1, 1), (1, 1, 0), (0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 0)]
    corners = (used[:, None, :] + numpy.array(steps)).reshape(-1, 3)
    corners, index = numpy.unique(corners, axis=0, return_inverse=True)
    r = mesh.radius - mesh.depth[corners[:, 0]]
    latitude = numpy.radians(mesh.latitude[corners[:, 1]])
    longitude = numpy.radians(mesh.longitude[corners[:, 2]])
    level = r * numpy.cos(latitude)
    points = numpy.stack(
        [level * numpy.cos(longitude), level * numpy.sin(longitude), r * numpy.sin(latitude)],
        axis=1,
    )
    at = tuple(used.T)
    data = {
        "rays": [mesh.rays[at]],
        "length_km": [mesh.length[at]],
        "density": [mesh.density().filled(0)[at]],
    }
    meshio.Mesh(points, [("hexahedron", index.reshape(-1, 8))], cell_data=data).write(path)


def places(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        [
            (float(row[name]) + 180) % 360 - 180 if name == "longitude" else float(row[name])
            for row in rows
        ]
        for name in ("longitude", "latitude")
    ]


def draw_map(mesh, depth, events, stations, path):
    level = min(int(numpy.searchsorted(mesh.depth, depth, side="right")) - 1, len(mesh.depth) - 2)
    figure, axes = plot.subplots(figsize=(10, 5.2), layout="constrained")
    density = mesh.density()[level]
    # Without any ray there is no range of colours.
    norm = LogNorm() if density.count() else None
    image = axes.pcolormesh(mesh.longitude, mesh.latitude, density, norm=norm, cmap="viridis")
    figure.colorbar(image, label="km of rays in 10⁶ km³", shrink=0.8)
    for name, file, mark, colour in (
        ("events", events, "*", "red"),
        ("stations", stations, "^", "black"),
    ):
        if file:
            axes.plot(*places(file), mark, color=colour, markersize=6, linestyle="none", label=name)
    axes.set(
        xlim=(-180, 180),
        ylim=(-90, 90),
        aspect="equal",
        xlabel="longitude",
        ylabel="latitude",
        title=f"Rays between {mesh.depth[level]:.0f} and {mesh.depth[level + 1]:.0f} km",
    )
    if events or stations:
        axes.legend(loc="lower left")
    figure.savefig(path, dpi=110)


def draw_section(mesh, longitude, path):
    """The meridian on the right, the one opposite on the left; north is up."""
    figure, axes = plot.subplots(figsize=(6.5, 6), layout="constrained")
    density = mesh.density()
    drawn = density.compressed()
    norm = LogNorm(drawn.min(), drawn.max()) if len(drawn) else None
    r = mesh.radius - mesh.depth
    for side in (1, -1):
        meridian = (longitude + (0 if side > 0 else 180) + 180) % 360 - 180
        column = int(numpy.searchsorted(mesh.longitude, meridian, side="right")) - 1
        latitude = numpy.radians(mesh.latitude)
        x, y = side * numpy.outer(r, numpy.cos(latitude)), numpy.outer(r, numpy.sin(latitude))
        image = axes.pcolormesh(x, y, density[:, :, column], norm=norm, cmap="viridis")
    figure.colorbar(image, label="km of rays in 10⁶ km³", shrink=0.8)
    axes.set(
        aspect="equal",
        title=f"Longitude {longitude:g}° on the right, {(longitude + 360) % 360 - 180:g}° left",
        xlabel="km",
        ylabel="km",
    )
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events")
    parser.add_argument("--stations")
    parser.add_argument("--depth", type=float, default=1000)
    parser.add_argument("--longitude", type=float, default=150)
    options = parser.parse_args()
    mesh = Mesh(options.folder / "cells.csv")
    write_netcdf(mesh, options.folder / "mesh.nc")
    write_vtk(mesh, options.folder / "mesh.vtu")
    draw_map(mesh, options.depth, options.events, options.stations, options.folder / "map.png")
    draw_section(mesh, options.longitude, options.folder / "section.png")


if __name__ == "__main__":
    main()
