"""What the rows of the papers' experiments say, as cells of the page. A function here reads the
summaries of all experiments, or returns one that does; it gives None where they have nothing."""

import math
import statistics
from typing import Callable, Iterable

import rows

OPEN, MPICH = "Open MPI", "MPICH"
POINTS = ("pingpong", "pingping", "sendrecv", "exchange")
TOGETHER = ("allreduce", "reduce", "reduce_scatter", "allgather", "allgatherv", "alltoall", "bcast")
ABSENT = "not measured: the sources of the NAS Parallel Benchmarks are absent (NPB=DIR)"


class Used(set):
    """How many runs the figures of a row have."""

    def text(self) -> str:
        """As the column of the table has it."""
        least, most = (min(self), max(self)) if self else (0, 0)
        return "" if not self else f"{least}" if least == most else f"{least} to {most}"


# Of the row that is being written.
used = Used()


def entries(found: dict, name: str, **wanted: object) -> list[dict]:
    """The entries of an experiment with these values; an MPI is named without its version."""
    def fits(entry: dict) -> bool:
        return all(str(entry[key]).startswith(value) if key == "mpi" else entry[key] == value
                   for key, value in wanted.items())
    return [entry for entry in found.get(name, {}).get("entries", []) if fits(entry)]


def ranged(middle: float, low: float, high: float, digits: int) -> str:
    """A figure, and the least and largest run where these are others."""
    ends = [f"{end:.{digits}f}" for end in (low, high)]
    return f"{middle:.{digits}f}" + (f" ({ends[0]} to {ends[1]})" if ends[0] != ends[1] else "")


def time(entry: dict, unit: float, digits: int) -> str:
    """The median of the runs' medians."""
    used.add(len(entry["runs"]))
    return ranged(entry["median"] / unit, entry["low"] / unit, entry["high"] / unit, digits)


def rate(entry: dict) -> float:
    """Mbit/s of a message's median."""
    return entry["size_bytes"] * 8 / entry["median"]


def rate_text(entry: dict) -> str:
    """The same with its range."""
    used.add(len(entry["runs"]))
    bits = entry["size_bytes"] * 8
    return ranged(rate(entry), bits / entry["high"], bits / entry["low"], 0)


def joined(parts: Iterable[str | None], between: str = "; ") -> str | None:
    """Those that are there; None where none is."""
    there = [part for part in parts if part]
    return between.join(there) or None


def latencies(found: dict) -> str | None:
    """Table IV of hablot-2007."""
    def row(name: str, label: str, **wanted: object) -> str | None:
        times = []
        for way in ("site", "direct", "causeway"):
            for one in entries(found, name, way=way, size_bytes=1, **wanted)[:1]:
                used.add(len(one["runs"]))
                times.append(f"{one['min']:.0f}")
        return f"{label} {' / '.join(times)} us" if len(times) == 3 else None
    mpis = [row("pingpong", mpi, mpi=mpi, settings="default") for mpi in (OPEN, MPICH)]
    ours = joined([row("tcp", "TCP"), *mpis])
    return ours and f"one site / direct / Causeway: {ours}"


def rates(way: str, settings: str) -> Callable[[dict], str | None]:
    """The largest rate of each MPI, and that of 1 MB."""
    def read(found: dict) -> str | None:
        parts = []
        for mpi in (OPEN, MPICH):
            own = [entry for entry in entries(found, "pingpong", mpi=mpi, way=way, settings=settings)
                   if entry["size_bytes"] >= 1024]
            if own:
                one = [rate_text(entry) for entry in own if entry["size_bytes"] == 1 << 20]
                at = f", 1 MB {one[0]}" if one else ""
                parts.append(f"{mpi} {rate_text(max(own, key=rate))}{at}")
        ours = joined(parts)
        return ours and f"{ours} Mbit/s"
    return read


def overhead(found: dict) -> str | None:
    """What both gateways add to a round trip of an MPI: section 4.2 of hablot-2009."""
    parts = []
    for mpi in (OPEN, MPICH):
        ways = [{entry["size_bytes"]: entry for entry in entries(found, "pingpong", mpi=mpi, way=way, settings="tuned")}
                for way in ("direct", "causeway")]
        if not all(1 in way and 32 << 20 in way for way in ways):
            continue
        added = 2 * (ways[1][1]["median"] - ways[0][1]["median"])
        large = [rate_text(way[32 << 20]) for way in ways]
        parts.append(f"{mpi} {added:+.0f} us; {large[0]} -> {large[1]} Mbit/s")
    return joined(parts)


OPERATIONS = (("operations-default", "direct"), ("operations", "direct"), ("operations", "causeway"))


def operations(names: Iterable[str], size: int) -> Callable[[dict], str | None]:
    """Times of operations of one size: direct, as the MPI comes and tuned, and through Causeway."""
    def read(found: dict) -> str | None:
        parts = []
        for mpi in (OPEN, MPICH):
            pairs = []
            for name in names:
                times = [time(entry, 1e3, 2) for experiment, way in OPERATIONS
                         for entry in entries(found, experiment, operation=name, mpi=mpi, way=way, measure="once", size_bytes=size)[:1]]
                if len(times) == len(OPERATIONS):
                    pairs.append(f"{name} {' / '.join(times)}")
            parts.append(f"{mpi}: {', '.join(pairs)}" if pairs else None)
        ours = joined(parts)
        return ours and f"last end minus first start, direct as it comes / direct tuned / Causeway, ms: {ours}"
    return read


def mpis_in(found: dict, name: str) -> list[str]:
    """The MPIs of an experiment, with their versions."""
    return list(dict.fromkeys(entry["mpi"] for entry in found.get(name, {}).get("entries", [])))


def in_cluster(names: Iterable[str], size: int) -> Callable[[dict], str | None]:
    """What the loops of vinter-2004's benchmark tell within one site, each MPI as it comes."""
    def read(found: dict) -> str | None:
        parts = []
        for mpi in mpis_in(found, "cluster"):
            own = [(name, entries(found, "cluster", mpi=mpi, operation=name, measure="loop", size_bytes=size)) for name in names]
            parts.append(f"{mpi}: " + ", ".join(f"{name} {time(there[0], 1, 1)}" for name, there in own if there))
        ours = joined(parts)
        return ours and f"mean of a loop, us: {ours}"
    return read


def relative_means(values: dict[str, list[float]]) -> dict[str, float]:
    """Geometric means, relative to the best."""
    means_ = {name: math.exp(statistics.mean(math.log(value) for value in own)) for name, own in values.items() if own}
    best = min(means_.values(), default=1)
    return {name: mean / best for name, mean in means_.items()}


def cluster_means(found: dict) -> str | None:
    """How much longer the operations of each MPI take within one site than the best one's."""
    parts = []
    for label, sizes in (("0 and 8 B", (0, 8)), ("4 MB", (4 << 20,))):
        values = {}
        for mpi in mpis_in(found, "cluster"):
            # Operations of nothing may do nothing.
            own = [entries(found, "cluster", mpi=mpi, operation=name, measure="loop", size_bytes=size)
                   for size in sizes for name in (POINTS if size == 0 else TOGETHER if size == 8 else POINTS + TOGETHER)]
            used.update(len(there[0]["runs"]) for there in own if there)
            values[mpi] = [there[0]["median"] for there in own if there and there[0]["median"]]
        shown = relative_means(values)
        parts.append(shown and f"{label}: " + ", ".join(f"{mpi} {mean:.2f}" for mpi, mean in shown.items()))
    ours = joined(parts)
    return ours and f"geometric means, relative to the best: {ours}"


# Of vinter-2004's nodes, euros.
NODE = 1428


def cluster_suite(found: dict) -> str | None:
    """What the benchmarks take within one site, and what the difference is worth."""
    if not any(name.startswith("npb") for name in found):
        return ABSENT
    every = {mpi: {entry["operation"]: entry for name in ("cluster-large", "cluster-small") for entry in entries(found, name, mpi=mpi)}
             for mpi in mpis_in(found, "cluster-large")}
    if not every:
        return None
    parts = [f"{mpi}: " + ", ".join(f"{name} {time(entry, 1, 2)}" for name, entry in own.items()) for mpi, own in every.items()]
    shown = relative_means({mpi: [entry["median"] for entry in own.values()] for mpi, own in every.items()})
    worth = [f"{mpi} {mean:.3f}" + (f", {NODE * (1 - 1 / mean):.0f} euros of a node of {NODE}" if mean > 1 else "") for mpi, mean in shown.items()]
    return f"s: {'; '.join(parts)}; geometric means, relative to the best: {'; '.join(worth)}"


def large_rates(way: str, settings: str) -> Callable[[dict], str | None]:
    """The rates of 1 and 64 MB of each MPI, and the largest."""
    def read(found: dict) -> str | None:
        parts = []
        for mpi in mpis_in(found, "sizes"):
            own = {entry["size_bytes"]: entry for entry in entries(found, "sizes", mpi=mpi, way=way, settings=settings)}
            rates_ = [entry for size, entry in own.items() if size >= 1024]
            if 1 << 20 in own and 64 << 20 in own:
                most = max(rates_, key=rate)
                parts.append(f"{mpi}: 1 MB {rate_text(own[1 << 20])}, 64 MB {rate_text(own[64 << 20])}, most {rate_text(most)}")
        ours = joined(parts)
        return ours and f"{ours} Mbit/s"
    return read


def suite(found: dict, **wanted: object) -> dict[str, dict]:
    """Entries of the NAS Parallel Benchmarks by their names."""
    end = "-default" if wanted.get("settings") == "default" else ""
    all_ = entries(found, f"npb-large{end}", **wanted) + entries(found, f"npb-small{end}", **wanted)
    return {entry["operation"]: entry for entry in all_}


def shares(above: dict[str, dict], below: dict[str, dict]) -> str | None:
    """Relative times of the benchmarks that both have; one that tells 0.00 s is left out."""
    pairs = []
    for name in above:
        if below.get(name, {}).get("median"):
            *three, turns = rows.ratio(above[name], below[name])
            used.add(turns)
            pairs.append(f"{name} {ranged(*three, 2)}")
    return ", ".join(pairs) or None


def relative(one: dict, other: dict) -> Callable[[dict], str | None]:
    """Relative times of two conditions, for each MPI that neither names."""
    def read(found: dict) -> str | None:
        if not any(name.startswith("npb") for name in found):
            return ABSENT
        if "mpi" in one:
            return shares(suite(found, **one), suite(found, **other))
        parts = []
        for mpi in (OPEN, MPICH):
            pairs = shares(suite(found, mpi=mpi, **one), suite(found, mpi=mpi, **other))
            parts.append(pairs and f"{mpi}: {pairs}")
        return joined(parts)
    return read


def means(found: dict) -> str | None:
    """Geometric means of the suite, relative to the best."""
    found_means = {}
    for mpi in (OPEN, MPICH):
        for label, wanted in (("direct as it comes", {"way": "direct", "settings": "default"}),
                              ("direct tuned", {"way": "direct"}), ("Causeway", {"way": "causeway"})):
            all_ = suite(found, mpi=mpi, **wanted).values()
            if all_ and all(entry["median"] for entry in all_):
                used.update(len(entry["runs"]) for entry in all_)
                found_means[f"{mpi}, {label}"] = math.exp(statistics.mean(math.log(entry["median"]) for entry in all_))
    if not found_means:
        return ABSENT
    best = min(found_means.values())
    return "; ".join(f"{name}: {mean / best:.3f}" for name, mean in found_means.items())


def signals(name: str, *keys: str) -> Callable[[dict], str | None]:
    """Counts of TCP in the runs of the benchmarks: direct and through Causeway."""
    def read(found: dict) -> str | None:
        if not any(key.startswith("npb") for key in found):
            return ABSENT
        counted = {}
        for experiment in ([name] if name else ["npb-large", "npb-small"]):
            for row in found.get(experiment, {}).get("network", []):
                if row["mpi"].startswith(OPEN) and row["way"] != "site":
                    used.add(row["count"])
                    shown = "/".join("-" if row[key] is None else f"{row[key]:.0f}" for key in keys)
                    counted.setdefault(row["program"], {})[row["way"]] = shown
        parts = [f"{program} {ways.get('direct', '-')} -> {ways.get('causeway', '-')}" for program, ways in counted.items()]
        return f"{OPEN}, means of the runs: {', '.join(parts)}" if parts else None
    return read


def techniques(size: int, *names: tuple[str, str]) -> Callable[[dict], str | None]:
    """Messages between sites: round trips of a byte, or rates."""
    def read(found: dict) -> str | None:
        parts = []
        for name, label in names:
            own = [entry for entry in entries(found, name) if entry["size_bytes"] == size]
            if own and size == 1:
                parts.append(f"{label} " + ", ".join(f"{e['way']} {time(e, 1e6 / 2, 4)} s" for e in own))
            elif own:
                parts.append(f"{label} " + ", ".join(f"{e['way']} {rate_text(e)} Mbit/s" for e in own))
        return joined(parts)
    return read


def over_techniques(size: int) -> Callable[[dict], str | None]:
    """Messages of MPIs over each technique of connecting two sites."""
    def read(found: dict) -> str | None:
        own = [row for row in found.get("techniques", []) if row["size_bytes"] == str(size)]
        times = medians(own, ("mpi", "technique"), lambda row: float(row["median_us"]))
        parts = []
        for mpi in dict.fromkeys(key[0] for key in times):
            ways = []
            for (_, technique), (middle, low, high) in ((key, time) for key, time in times.items() if key[0] == mpi):
                # One way, of which a round trip is twice as much; Mbit/s are bits in a microsecond.
                three = (2 * middle / 1e6, 2 * low / 1e6, 2 * high / 1e6) if size == 1 else [size * 8 / us for us in (middle, high, low)]
                ways.append(f"{technique} {ranged(*three, 4 if size == 1 else 0)}")
            parts.append(f"{mpi}: {', '.join(ways)}")
        unit = "s" if size == 1 else "Mbit/s"
        ours = joined(parts)
        return ours and f"{ours} {unit}"
    return read


SITES = (("orsay-rennes", "Orsay-Rennes"), ("orsay-bordeaux", "Orsay-Bordeaux"))
RELAY = (("relay", "Rennes-Nancy by way of Lyon"),)


def networks(found: dict) -> str | None:
    """Table 3 of coti-2011: rates and latencies, without an MPI."""
    parts = []
    for name, way, label in (("tcp", "site", "within a site"), ("orsay-bordeaux", "direct", "Orsay-Bordeaux")):
        own = {entry["size_bytes"]: entry for entry in entries(found, name, way=way)}
        if 1 in own:
            parts.append(f"{label} {rate_text(max((e for e in own.values() if e['size_bytes'] > 1), key=rate))} Mbit/s, {time(own[1], 1e3 / 2, 3)} ms")
    return joined(parts)


def medians(of: list[dict], keys: Iterable[str], value: Callable[[dict], float]) -> dict[tuple, tuple]:
    """The median, least and largest of a value over the rows that agree in these columns."""
    groups = {key: [value(row) for row in own] for key, own in rows.grouped(of, keys).items()}
    used.update(len(group) for group in groups.values())
    return {key: (statistics.median(group), min(group), max(group)) for key, group in groups.items()}


def rays(found: dict) -> str | None:
    """Times of ray2mesh's three forms, and the messages of rank 0 with other sites."""
    own, keys = found.get("ray2mesh", []), ("sites", "ranks", "form")
    phases = ("broadcast_s", "rays_s", "exchange_s", "output_s")
    times = medians(own, keys, lambda row: sum(float(row[phase]) for phase in phases))
    far = medians(own, keys, lambda row: int(row["messages_far"]))
    parts = []
    for sites, ranks in sorted({key[:2] for key in times}):
        forms = [(sites, ranks, form) for form in ("vanilla", "grid", "hierarchical")]
        count = "1 site" if sites == "1" else f"{sites} sites"
        parts.append(f"{count}, {ranks} ranks: {' / '.join(ranged(*times[form], 2) for form in forms)} s, "
                     f"{' / '.join(f'{far[form][0]:.0f}' for form in forms)} messages")
    ours = joined(parts)
    return ours and f"vanilla / grid collectives / hierarchical: {ours}"


def factorisations(found: dict) -> str | None:
    """Times of TSQR and ScaLAPACK with one rank a site."""
    times = medians(found.get("tsqr", []), ("rows", "program", "sites"), lambda row: float(row["time_s"]))
    parts = []
    for count in sorted({key[0] for key in times}, key=int):
        pairs = []
        for program, name in (("tsqr", "TSQR"), ("pdgeqrf", "ScaLAPACK")):
            own = [ranged(*times[count, program, sites], 3) for sites in "124" if (count, program, sites) in times]
            pairs.append(f"{name} {' / '.join(own)}")
        parts.append(f"{int(count):,} rows: {', '.join(pairs)}")
    ours = joined(parts)
    return ours and f"s on 1 / 2 / 4 sites, a rank each: {ours}"


def pauses(found: dict) -> str | None:
    """Times of the benchmarks with and without slow start after a pause, and through Causeway."""
    if not any(name.startswith("npb") for name in found):
        return ABSENT
    with_, without = ({entry["operation"]: entry for entry in entries(found, name, way="direct")}
                      for name in ("npb-slow-start", "npb-no-slow-start"))
    ours = {entry["operation"]: entry for name in ("npb-small", "npb-slow-start")
            for entry in entries(found, name, way="causeway", mpi=OPEN)}
    parts = []
    for name in with_:
        if name in without:
            third = f" -> {time(ours[name], 1, 2)}" if name in ours else ""
            parts.append(f"{name} {time(with_[name], 1, 2)} -> {time(without[name], 1, 2)}{third}")
    return ", ".join(parts) or None


def pieces(found: dict) -> str | None:
    """Times of a gather that is cut into pieces, by their number, and the bytes that crossed."""
    parts = []
    for name in found:
        if name.startswith("gather-"):
            one = entries(found, name, measure="once")
            crossed = [row["crossed_megabytes"] for row in found[name]["network"]]
            if one and crossed:
                parts.append(f"{name.removeprefix('gather-')}: {time(one[0], 1e3, 1)} ms, {crossed[0]:.4f} MB crossed")
    return joined(parts, ", ")


def elsewhere(text: str) -> Callable[[dict], str | None]:
    """A figure that another directory has."""
    return lambda _: text


def busy(found: dict) -> str | None:
    """The benchmarks beside two flows: Causeway over direct."""
    ways = [{e["operation"]: e for e in entries(found, "npb-busy", way=way)} for way in ("causeway", "direct")]
    return shares(*ways) or ABSENT
