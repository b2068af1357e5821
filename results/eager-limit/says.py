"""What README.md says, computed from the four jobs' rows."""

from figures import line, median, read, where

SIZES = (1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)


def texts():
    yield line("limit", *(f"{5.8 + size * 8 / 1e6:.2f}" for size in SIZES))
    for kind in ("untuned", "tuned"):
        jobs = [read(f"{kind}-{number}.csv") for number in (0, 1)]
        cells = ([f"{median(where(job, size_bytes=size), 'one_way_us') / 1000:.2f}" for job in jobs] for size in SIZES)
        yield line(kind, *(", ".join(cell) for cell in cells))
