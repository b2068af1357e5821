"""What README.md says, computed from builds.csv."""

from figures import line, median, read, where

WHATS = {
    "plain 1 lane": "clear text, 1 lane",
    "plain 4 lanes": "clear text, 4 lanes",
    "TLS 1 lane": "TLS, 1 lane",
    "QUIC 1 lane": "QUIC, 1 lane",
    "perfect copy 2 relays": "two relays that only copy",
}


def texts():
    rows = read("builds.csv")
    for row in rows:
        if float(row["cpu_seconds"]):
            row["rate"] = float(row["bytes"]) * 8 / 1e9 / float(row["cpu_seconds"])
    for what, name in WHATS.items():
        cells = []
        for commit in ("37bec78a", "e848415c"):
            own = where(rows, what=what, commit=commit)
            rates = [row["rate"] for row in own]
            cells += [f"{median(own, 'rate'):.2f}", f"{min(rates):.1f} to {max(rates):.1f}"]
        yield line(name, *cells)
