#!/usr/bin/env python3
"""Predicts how long ray2mesh takes at numbers of ranks that this machine has no cores for, and puts
the same prediction beside what was measured at those that it has.

    results/ray2mesh/model.py [curve.csv.gz]

The second phase runs in virtual time, by the library's own decisions (tests/examples/workers/
scale.c). The first and the third are counted here: messages of each collective operation, with the
way of each. README.md lists what is assumed. It prints CSV.
"""

import csv
import gzip
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORKERS = ROOT / "lib/workers/src"
# Measured on this machine; README.md says how. Seconds, but for RATE, in bytes a second.
MESSAGE = 17e-6
NEAR = 60e-6
RAY = 330e-6
START = 0.15
ENTRIES_A_RAY = 39
SORT = 0.23e-6
RATE = 125e6
MODEL_BYTES, SITES_BYTES, ENTRY_BYTES = 115_000, 1500, 24
# Orsay, Rennes, Bordeaux as coti-2011 has them, and one more at the longest of these.
ROUND_TRIPS = [10.3, 7.8, 8.0, 10.3, 10.3, 10.3]
FORMS = ["vanilla", "grid", "hierarchical"]


def way_of_open_mpi(ranks, size):
    """Sender and receiver of each message of a broadcast: as Open MPI's table of fixed decisions
    (coll_tuned_decision_fixed.c) chooses for these sizes."""
    small = size < 16384
    if small and (ranks < 8 or ranks >= 128 or size == 28):
        return [((rank - 1) // 2, rank) for rank in range(1, ranks)]
    if not small and ranks < 16:
        return [(0, rank) for rank in range(1, ranks)]
    # A tree of radix 4.
    pairs, step = [], 1
    while step < ranks:
        pairs += [(a, a + step * i) for a in range(step) for i in (1, 2, 3) if a + step * i < ranks]
        step *= 4
    return pairs


class Ranks:
    """When each rank is free, and which pairs have a connection. A first message opens one, which
    takes a round trip."""

    def __init__(self, sites):
        self.site = [site for site, count in enumerate(sites) for _ in range(count)]
        self.sites = sites
        self.free = [0.0] * len(self.site)
        self.open, self.link = {}, {}

    def round_trip(self, a, b):
        low, high = sorted((self.site[a], self.site[b]))
        return NEAR if low == high else ROUND_TRIPS[high * (high - 1) // 2 + low] / 1000

    def arrival(self, a, b, size, start):
        """When a message gets there that leaves at `start`. Messages between two sites go one after
        another."""
        way, sites = self.round_trip(a, b), (self.site[a], self.site[b])
        opened = self.open.setdefault(frozenset((a, b)), start + way)
        leaves = max(start, opened, self.link.get(sites, 0) if way != NEAR else 0)
        if way != NEAR:
            self.link[sites] = leaves + size / RATE
        return leaves + size / RATE + way / 2

    def send(self, a, b, size=0):
        self.free[a] += MESSAGE
        arrival = self.arrival(a, b, size, self.free[a])
        self.free[b] = max(self.free[b], arrival) + MESSAGE

    def tree(self, ranks, size):
        """A binomial tree, over the first of `ranks`."""
        for step in (1 << bit for bit in range(len(ranks).bit_length())):
            for at in range(step):
                if at + step < len(ranks):
                    self.send(ranks[at], ranks[at + step], size)

    def gather(self, ranks):
        for step in (1 << bit for bit in reversed(range(len(ranks).bit_length()))):
            for at in range(step):
                if at + step < len(ranks):
                    self.send(ranks[at + step], ranks[at])

    def members(self):
        return [[r for r, at in enumerate(self.site) if at == s] for s in range(len(self.sites))]

    def bcast(self, size, grid):
        if not grid:
            for a, b in sorted(way_of_open_mpi(len(self.site), size)):
                self.send(a, b, size)
            return
        members = self.members()
        for group in members[1:]:
            self.send(0, group[0], size)
        for group in members:
            self.tree(group, size)

    def allreduce(self, grid):
        if not grid:
            # Recursive doubling.
            for step in (1 << bit for bit in range((len(self.site) - 1).bit_length())):
                before = list(self.free)
                for a in range(len(self.site)):
                    b = a ^ step
                    if b < len(self.site):
                        got = self.arrival(b, a, 0, before[b] + MESSAGE)
                        self.free[a] = max(before[a] + MESSAGE, got) + MESSAGE
            return
        members = self.members()
        for group in members:
            self.gather(group)
        for group in members[1:]:
            self.send(group[0], 0)
        for group in members[1:]:
            self.send(0, group[0])
        for group in members:
            self.tree(group, 0)

    def alltoall(self, total, grid):
        """`total` bytes, spread evenly over all pairs."""
        count = len(self.site)
        begun = max(self.free)
        crossing = max(
            (a * b * total / count**2 for i, a in enumerate(self.sites) for b in self.sites[:i]),
            default=0,
        )
        pairs = ((0, r) for r in range(count))
        way = max(self.round_trip(a, b) for a, b in pairs)
        others = len(self.sites) if grid else count - 1
        # Linear: each rank posts all at once. Connections that are new take a round trip.
        new = 0 if grid else way * any(frozenset((r, 1)) not in self.open for r in range(2, count))
        self.free = [begun + new + way / 2 + 2 * others * MESSAGE + crossing / RATE] * count
        self.open |= {frozenset((a, b)): 0 for a in range(count) for b in range(a)}


def rays_phase(program, sites, form, rays, block, cores, ray=RAY):
    shape = "hierarchical" if form == "hierarchical" else "flat"
    words = [",".join(map(str, sites)), shape, rays, block, ray * 1e6, MESSAGE * 1e6, NEAR * 1e6]
    words += [",".join(map(str, ROUND_TRIPS)), cores]
    said = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=True)
    _, _, _, seconds, ideal, messages, far, busy = said.stdout.strip().split(",")
    start = START if len(sites) > 1 else 0
    return float(seconds) + start, float(ideal), int(messages), int(far), float(busy)


def predict(program, sites, form, rays, block, cores, ray=RAY):
    ranks, grid = Ranks(sites), form != "vanilla" and len(sites) > 1
    for size in (4, MODEL_BYTES, 100, 4, 28, 4):
        ranks.bcast(size, grid)
    ranks.allreduce(grid)
    for size in (SITES_BYTES, 4):
        ranks.bcast(size, grid)
    ranks.allreduce(grid)
    for size in (SITES_BYTES, 4):
        ranks.bcast(size, grid)
    broadcast = ranks.free[0]
    traced = rays_phase(program, sites, form, rays, block, cores, ray)
    ranks.free = [0.0] * len(ranks.free)
    entries = rays * ENTRIES_A_RAY
    ranks.allreduce(grid)
    ranks.alltoall(4 * len(ranks.site) ** 2, grid)
    ranks.allreduce(grid)
    ranks.alltoall(entries * ENTRY_BYTES, grid)
    sharing = min(sum(sites), cores) if cores else sum(sites)
    exchange = max(ranks.free) + entries * SORT / sharing
    return broadcast, *traced, exchange


def print_row(kind, sites, form, rays, found, measured):
    broadcast, traced, ideal, messages, far, busy, exchange = found
    row = [kind, len(sites), sum(sites), form, rays, f"{broadcast:.3f}", f"{traced:.3f}"]
    row += [f"{ideal:.3f}", f"{exchange:.3f}", messages, far, f"{busy:.3f}", *measured]
    print(",".join(map(str, row)), flush=True)


def medians(path):
    """By sites, ranks and form."""
    rows = {}
    with gzip.open(path, "rt", newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault((int(row["sites"]), int(row["ranks"]), row["form"]), []).append(row)
    names = ["broadcast_s", "rays_s", "exchange_s", "messages", "messages_far"]
    return {
        key: [statistics.median(float(row[name]) for row in group) for name in names]
        for key, group in rows.items()
    }


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "scale")
        sources = [str(WORKERS / f"{name}.c") for name in ("schedule", "memory", "tree")]
        scale = str(ROOT / "tests/examples/workers/scale.c")
        subprocess.run(["cc", "-O2", scale, *sources, "-lm", "-o", program], check=True)
        print(
            "kind,sites,ranks,form,rays,broadcast_s,rays_s,ideal_s,exchange_s,messages,"
            "messages_far,busy,measured_broadcast_s,measured_rays_s,measured_exchange_s,"
            "measured_messages,measured_messages_far"
        )
        if len(sys.argv) > 1:
            rows = medians(sys.argv[1])
            # Others used the machine too: a ray takes what it took two ranks at one site.
            ray = rows[1, 2, "vanilla"][1] * 2 / 6510
            for (count, ranks, form), measured in sorted(rows.items()):
                sites = [ranks // count] * count
                found = predict(program, sites, form, 6510, 30, 2, ray)
                print_row("check", sites, form, 6510, found, [f"{x:.4g}" for x in measured])
        for rays, block in ((100_000, 6), (1_000_000, 61), (10_000_000, 64)):
            for sites in ([180], [90, 90], [60, 60, 60], [45, 45, 45, 45]):
                for form in FORMS:
                    found = predict(program, sites, form, rays, block, 0)
                    print_row("predicted", sites, form, rays, found, [""] * 5)


if __name__ == "__main__":
    main()
