"""What README.md says, computed from send-time.csv."""

from figures import line, median, read, where

SIZES = {128: "128", 129: "129", 1 << 10: "1 kB", 8 << 10: "8 kB", 64 << 10: "64 kB", 256 << 10: "256 kB", 1 << 20: "1 MB"}


def texts():
    rows = read("send-time.csv")
    ways = ("direct", "no-collectives", "causeway")
    for size, label in SIZES.items():
        times = (median(where(rows, way=way, size_bytes=size), "microseconds") for way in ways)
        yield line(label, *(f"{time:,.0f}".replace(",", " ") for time in times))
