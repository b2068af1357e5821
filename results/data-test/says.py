"""The tables of README.md: what the test printed (exchanges.csv), and times from pingpong.csv."""

from figures import line, median, read, where

WAYS = ("direct", "before", "now", "no threshold")


def limit(size):
    """R/2 + s/B in microseconds."""
    return 5800 + size * 8 / 1000


def texts():
    for row in read("exchanges.csv"):
        yield line(*row.values()).replace("|  |", "| |")
    rows = read("pingpong.csv")
    for size in dict.fromkeys(int(row["size_bytes"]) for row in rows):
        cells = [median(where(rows, way=way, size_bytes=size), "one_way_us") for way in WAYS]
        least = f"{limit(size) / 1000:.2f}".rstrip("0")
        yield line(size, least, *(f"{time / 1000:.2f} ({time / limit(size):.2f})" for time in cells))
