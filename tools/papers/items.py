"""What each table and figure of the four papers shows, what was measured for it here, and why the
two differ."""

import math
import statistics
import textwrap
from typing import Callable, Iterable, NamedTuple

import counts
import rows
import second

OPEN, MPICH = "Open MPI", "MPICH"
POINTS = ("pingpong", "pingping", "sendrecv", "exchange")
TOGETHER = ("allreduce", "reduce", "reduce_scatter", "allgather", "allgatherv", "alltoall", "bcast")
ABSENT = "not measured: the sources of the NAS Parallel Benchmarks are absent (NPB=DIR)"


class Item(NamedTuple):
    """A row of the index."""

    paper: str
    what: str
    published: str
    # Reads the summaries; None where they have nothing.
    here: Callable[[dict], str | None]
    # "reproduced", "scaled: how", or "not carried: why".
    state: str
    differs: str


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


H, V, M, Q = "hablot-2007", "vinter-2004", "hablot-2009 (MPI5000)", "coti-2011 (QCG-OMPI)"
SCALED = "scaled: 2+2 ranks for 8+8; class A (IS, CG, MG, FT) and W (EP, LU, BT, SP) for B: two cores carry no more"
SPINS = "MPICH's ranks wait busily: four of them on two cores keep each other from running, and the emulator."
EAGER = "What is tuned are eager limits and buffers: as it comes, an MPI waits a round trip for leave before each larger message."
DEFAULT = "What runs as it comes did not run in turn with the rest."
SMALLER = "Smaller problems wait longer for the same round trips."
ITEMS = [
    Item(H, "Table I: features", "four MPIs of 2007", elsewhere("report.html, 'What MPIs have for grids'"), "reproduced",
         "The MPIs are today's; the last row has what Causeway adds."),
    Item(H, "Table II: messages of the NPB",
         "EP 192 x 8 B + 68 x 80 B; CG 126479 x 8 B + 86944 x 147 kB; MG 50809 of 4 B to 130 kB; LU 1200000 x 960 to 1040 B; "
         "SP 57744 x 45 to 54 kB + 96336 x 100 to 160 kB; BT 28944 x 26 kB + 48336 x 146 to 156 kB; "
         "IS 176 x 1 kB + 176 x 30 MB; FT 320 x 1 B + 352 x 128 kB", counts.table(is_between=False), "reproduced",
         "Class B on 16 ranks, Open MPI; groups of a twentieth of all messages or bytes, so the groups of MG have 34152 of its 45072 "
         "messages. Of an operation the calls of all ranks and the bytes that each gives are shown: FT's 33.6 MB are 2.1 MB to each "
         "rank, as MPI5000's Table 2 has them. Class B of IS sorts 2^25 keys of 4 B, so a rank gives 8.39 MB in a call, and not 30 MB. Why CG sends 9 % more large "
         "messages than the paper counted, and MG 11 % fewer, is not known."),
    Item(H, "Fig. 1, Table III: testbed", "Rennes, Nancy; 11.6 ms, 1 Gbit/s; Opteron, Linux 2.6.18",
         elsewhere("scenarios/rennes-nancy.toml; one host, below"), "reproduced",
         "All nodes share two cores, and the LANs have no rate."),
    Item(H, "Table IV: latency, least of 200", "cluster / grid: TCP 41 / 5812, MPICH2 46 / 5818, Open MPI 46 / 5820 us", latencies,
         "reproduced", "Least of all runs: 200 round trips a run within a site, 84 or 85 between sites. TCP did not run in turn with the MPIs, which "
         "are as they come, as in the paper. Nodes of one host are nearer to each other than hosts. Causeway adds its two gateways."),
    Item(H, "Fig. 2: rate in a cluster, default", "940 Mbit/s", rates("site", "default"), "scaled: no rate bounds the emulated LAN",
         "Memory is what bounds it."),
    Item(H, "Fig. 3: rate between sites, default", "at most 120 Mbit/s", rates("direct", "default"), "reproduced",
         "Kernels of today let buffers grow by themselves; what is left of the loss is the eager limit."),
    Item(H, "Fig. 4: rate between sites, tuned", "910 Mbit/s, half of it at 1 MB", rates("direct", "tuned"), "reproduced",
         "With the eager limit raised as well, 1 MB has more than half."),
    Item(H, "Fig. 4, through Causeway", "-", rates("causeway", "tuned"), "beyond the paper", "Nothing was set by hand."),
    Item(H, "Fig. 5: NPB beside MPICH2", "bars around 1", relative({"mpi": OPEN, "way": "direct"}, {"mpi": MPICH, "way": "direct"}),
         SCALED, f"Open MPI over MPICH, both of today, tuned, direct. {SPINS}"),
    Item(H, "Fig. 6: NPB on the grid beside one cluster", "with YAMPII: EP near 1, half of them below 1.2, CG and MG bad, IS quite bad",
         relative({"way": "direct"}, {"way": "site"}), SCALED, f"{SMALLER} {SPINS} So its one cluster is slower, and the ratio smaller."),
    Item(H, "Fig. 6, through Causeway", "-", relative({"way": "causeway"}, {"way": "site"}), "beyond the paper", ""),
    Item(H, "Fig. 7: 16 nodes beside 4", "speed-up of 3 to 4 for LU, BT, FT, SP", elsewhere("-"),
         "not carried: more ranks than cores give no speed-up", ""),
    Item(V, "Fig. 1: the cluster", "a drawing", elsewhere("-"), "not carried: nothing is measured there", ""),
    Item(V, "Fig. 2: point to point, 0 B", "MPICH's concurrent send and receive takes more than 12 times MESH-MPI's, otherwise the three are close; that ping-pong and ping-ping show 62.5 and 125 us is no difference of MPIs", operations(POINTS, 0),
         "scaled: 2+2 ranks over two sites for 32 in a cluster",
         f"A round trip between sites is 11.6 ms. The paper's MPIs are as they come. Its network cards interrupt 8000 times a second, so its latencies are multiples of 62.5 us one way, and hide what is smaller. {DEFAULT} {SPINS}"),
    Item(V, "Fig. 3: point to point, 4 MB", "MPICH slowest, the others within 2 % but for ping-ping, where LAM is 5 % faster", operations(POINTS, 4 << 20),
         "scaled: 2+2 ranks", f"{DEFAULT} {SPINS}"),
    Item(V, "Fig. 4: collectives, 8 B", "the best MPI 7 to 12 times faster at Bcast", operations(TOGETHER, 8),
         "scaled: 2+2 ranks", f"Two sites: what crosses more than once waits more than once. {DEFAULT} {SPINS}"),
    Item(V, "Figs. 5, 6: collectives, 4 MB", "the best MPI 4.3 and 4.6 times faster on average", operations(TOGETHER, 4 << 20),
         "scaled: 2+2 ranks", f"{DEFAULT} {SPINS}"),
    Item(V, "Figs. 7, 8: NPB suite, class C on 32 (BT, SP: 36) processors of one cluster",
         "MESH-MPI 14.5 % faster than LAM and 37.1 % faster than MPICH", means, SCALED,
         "Geometric means, relative to the best: what others take longer. The paper compares MPIs within a cluster; here two sites "
         f"are joined, and what crosses decides. {EAGER} {DEFAULT} {SPINS}"),
    Item(V, "Fig. 9: value of the difference",
         "206 and 530 euros a node; with Norway's electricity 292 and 749, with Denmark's 386 and 991",
         elsewhere("report.html, 'What the difference is worth'"), "reproduced",
         "A unit test gives the paper's values from its inputs. The page has inputs of today, to be changed."),
    Item(M, "Figs. 1 to 4: split connections, components, header, testbed", "drawings", elsewhere("ARCHITECTURE.md; docs/gateway.md"),
         "not carried: nothing is measured there", ""),
    Item(M, "4.2: what two proxies add", "+141 us at 1 B; 840 -> 785 Mbit/s at 33 MB", overhead, "reproduced",
         "A ping-pong of an MPI; 32 MiB are 33.6 MB. The paper does not say whether its latency is one way. Its 141 us are 1.5 % of 9.4 ms, which is nearer to the round trip of its sites (11.6 ms in hablot-2007) than to half of it; so ours is that of the round trip, too."),
    Item(M, "Table 1: duplicate ACKs, RTOs, idle timeouts of BT, FT, LU",
         "duplicate ACKs and RTOs with FT only; 5668, 905 and 760 idle timeouts",
         signals("", "out_of_order", "timeouts", "idle_restarts"), SCALED,
         "Out of order / RTO / restarts after silence, direct -> Causeway. Kernels do not count restarts: '-'."),
    Item(M, "Table 2: data between sites", "BT 2.8, CG 2.37, FT 5.9, IS 0.74, LU 0.62, MG 0.19, SP 5.1 GB", counts.volumes, "reproduced",
         "Class B on 8+8 ranks, counted; of FT and IS the half of an Alltoall that is for the other site."),
    Item(M, "Table 2, measured across the lanes", "-", signals("", "crossed_megabytes"), SCALED, "MB."),
    Item(M, "Table 2: writes between sites",
         "BT 9648 x 26 kB + 16112 x 160 kB; CG 15800 x 150 kB; FT 600 below 200 B + 2816 above 2 MB; "
         "IS 1151 below 400 B + 1400 of 0.5 to 0.6 MB; LU 200000 x 1 kB + 2000 x 200 kB; MG 8842 of 40 B to 135 kB; "
         "SP 19248 x 45 to 54 kB + 32112 x 100 to 160 kB", counts.table(is_between=True), "reproduced",
         "Class B on 8+8 ranks: messages between the two halves. All that FT sends, and all that IS sends but 15 "
         "messages of 4 B, are operations, of which the row above has the bytes: the MPI decides how many messages it makes of one."),
    Item(M, "Table 3: classes of the NPB",
         "size: LU below 1 kB, CG, MG, BT and SP 1 to 200 kB, IS and FT above; IS and FT seldom, CG, MG and LU often; "
         "bursts: FT and IS high, CG and MG medium, BT, SP and LU low",
         counts.classes, "scaled: size, number and share of operations alone; how often in time depends on the machine",
         "Mean bytes of a call, barriers among them, calls of a rank, and the share of bytes that operations of all ranks give, which are "
         "the paper's bursts of FT and IS; that CG and MG send at once does not show in counts. LU's mean is 3.07 kB, because "
         "12192 of its 1217028 messages have 200 kB; most have 1 kB."),
    Item(M, "Table 4: idle timeouts", "BT 331 -> 323, CG 725 -> 427, LU 185 -> 179, MG 73 -> 70, SP 487 -> 426",
         signals("", "idle_restarts"), SCALED,
         "Restarts of lanes, an upper bound (docs/checking.md). Under BBR they shrink no window. Kernels count none."),
    Item(M, "Table 5: without slow start after idle, and MPI5000",
         "BT 204 -> 171 -> 147, CG 122 -> 122 -> 116, LU 66 -> 71 -> 74, MG 11 -> 11 -> 14, SP 242 -> 203 -> 221 s",
         pauses, "scaled: class W, 2+2 ranks, Open MPI",
         "With slow start -> without -> through Causeway, s; the first and the last ran in turn. Class W probably pauses too shortly "
         "for the kernel to make a window smaller, so that nothing is there to be gained, where the paper gained with BT and SP; "
         "`causeway tune --verify --direct` measures the setting by messages after 300 ms (docs/tune.md)."),
    Item(M, "Fig. 5: NPB with the layer", "BT, CG and SP faster, LU and MG a little slower, FT 2.86 times slower; by Table 5 BT 0.72, SP 0.91, CG 0.95, LU 1.12, MG 1.27", relative({"way": "causeway"}, {"way": "direct"}),
         SCALED, "Causeway over direct, both tuned. LU is a little slower here, as in the paper. BT and SP, which gained there, do not here: "
         "the paper's direct runs lost time to windows that shrink after pauses, which kernels of today and the tuning give back, so "
         "what is left of the layer is its own work, on the ranks' two cores. FT, which the paper's layer made slower, is faster here. "
         "The paper's abstract gives 35, 28 and 15 % for BT, SP and LU; its text has the 35 % for SP, beside two flows (4.3.4, below), and none of the others."),
    Item(M, "Fig. 5, beside MPIs as they come", "-", relative({"way": "causeway"}, {"way": "direct", "settings": "default"}),
         SCALED, f"Causeway over direct with nothing tuned, which is what a user of plain connections has. {EAGER} {DEFAULT}"),
    Item(M, "4.3.2: Alltoall of 2 MB", "2.74 times slower with the layer",
         elsewhere("Open MPI 0.54 of direct, MPICH 5.0.2 0.58: results/alltoall"), "measured earlier, with 4+4 ranks, on another host", ""),
    Item(M, "Fig. 6, 4.3.4: NPB beside two flows", "better with the layer for BT, LU and SP: SP by 35 %; CG worse than without the flows; MG's losses too few to pay for the proxies", busy,
         "scaled: class W, 2+2 ranks",
         "Causeway over direct beside two flows from the first site to the second. This contradicts the paper's BT, LU and SP: its "
         "direct runs lost to retransmission timeouts, of which there are none here (the next row)."),
    Item(M, "Table 6: losses beside two flows", "DupACK/RTO: BT 757/56 -> 320/1, LU 327/232 -> 174/41, MG 94/53 -> 48/4, SP 1409/778 -> 667/131",
         signals("npb-busy", "out_of_order", "timeouts"), "scaled: class W, 2+2 ranks",
         "The flows beside start at other nodes, as the paper's do: the program's own connections are counted on the left, the lanes "
         "on the right. Both are means of the runs. Next to nothing was lost here: at most 23 segments of a direct run were sent "
         "again, without a timeout."),
    Item(M, "4.3.5, Figs. 5, 6: MPICH-G2 beside MPICH2", "like MPICH2 but for IS, whose operations know the grid; the layer gains as much beside either",
         elsewhere("-"), "not carried: MPICH-G2 is not to be had: it needs the Globus Toolkit, whose support ended in 2018",
         "What knows the grid here are Causeway's own collectives (results/collectives)."),
    Item(Q, "Figs. 1 to 3: architecture, life cycle, job profile", "drawings and an excerpt", elsewhere("ARCHITECTURE.md; docs/topology.md"),
         "not carried: nothing is measured there", ""),
    Item(Q, "Table 3: the networks",
         "shared memory 3979.46 Mbit/s, 0.02 ms; TCP of the QCG cluster 89.61, 0.1; within a cluster of Grid'5000 894.39, 0.1; Orsay-Bordeaux 136.08, 7.8",
         networks, "scaled: no rate bounds the emulated LAN; of the QCG cluster nothing",
         "Rate of the fastest message, and the round trip of 1 B, within a site and between two. The paper does not "
         "say whether its latency is one way; here it is taken for the round trip."),
    Item(Q, "Table 1: latency of the techniques, without an MPI",
         "direct / relay / traversing: Orsay-Rennes 0.0103 / 0.0106 / 0.0103 s; Orsay-Bordeaux 0.0078 / 0.0084 / 0.0078 s; MPICH-G2 0.0104 and 0.0079 s",
         techniques(1, *SITES), "reproduced",
         "Round trips of plain TCP: direct, and through both gateways, which are relays at both ends; the paper's relay is at Orsay, one of both ends. The MPI over each technique is in the row below."),
    Item(Q, "Table 1: a relay at a third site", "Bordeaux-Rennes 0.0080 direct, 0.0287 by way of Orsay", techniques(1, *RELAY),
         "scaled: another topology",
         "Round trip. By way of Lyon the links alone take 14 ms, direct 11.6 ms."),
    Item(Q, "Table 2: rate of the techniques, without an MPI", "Orsay-Bordeaux direct 136.08, relay 76.40, traversing 138.18 Mbit/s", techniques(4 << 20, *SITES),
         "reproduced", "Of one message of 4 MB over plain TCP: direct, and through both gateways."),
    Item(Q, "Table 2: that a relay halves the rate", "76.40 of 136.08 Mbit/s", techniques(4 << 20, *RELAY), "not carried: both links of the lab's relay have all of the rate",
         "In the paper both processes share the bandwidth of the relay. Causeway's carries lanes unread."),
    Item(Q, "Table 1: latency of an MPI over each technique", "Open MPI over all of them, above; port range not in the table",
         over_techniques(1), "scaled: Rennes-Nancy, 11.6 ms; the relay is at a third site, 14 ms away and back",
         "Round trips. `gateways`: one site's gateway can be dialled. `punched`: neither can, and one is behind a NAT. `relay`: the same "
         "two by a third site. `direct` and `port range` are the MPI's own connections. The techniques ran in turn."),
    Item(Q, "Table 2: rate of an MPI over each technique", "Orsay-Bordeaux direct 136.08, relay 76.40, traversing 138.18 Mbit/s",
         over_techniques(4 << 20), "scaled: Rennes-Nancy, 1 Gbit/s", "Of one message of 4 MB. Punched lanes are of QUIC here."),
    Item(Q, "Fig. 4: pieces of a gather", "eight pieces are best", pieces,
         "scaled: 4 MB of each of 2+2 ranks, MPICH, through Causeway",
         "A piece has 256 kB at most, so 4 MB have 16 at least; fewer were not asked for. The numbers did not run in turn, and their "
         "ranges overlap: none is best here. Only between 16, 32 and 64 do the bytes that crossed grow with the pieces."),
    Item(Q, "Fig. 5 (a), (b): Bcast and Reduce, standard and for grids", "Bcast always better; Reduce up to 100 kB",
         operations(("bcast", "reduce"), 64 << 10), "scaled: 2+2 ranks", f"64 kB. {DEFAULT} {SPINS}"),
    Item(Q, "Fig. 5 (c), (d): Reduce and Gather on a cluster of multicores", "better with few nodes", elsewhere("-"),
         "not carried: within a site the MPI's own operations are used", ""),
    Item(Q, "Figs. 6, 8: how Ray2mesh and TSQR go about it", "drawings", elsewhere("examples/ray2mesh, examples/tsqr"), "reproduced", ""),
    Item(Q, "Fig. 7: Ray2mesh over three clusters", "a gain of 9.5 % with grid collectives, of 35 % with bosses, too, at 180 processes, bosses not counted",
         rays, "scaled: 2 ranks a site, which share two cores",
         "What can be seen are messages; results/ray2mesh has a model of 180 ranks."),
    Item(Q, "Fig. 9: QR of 64 columns", "four sites: speed-up of ScaLAPACK hardly 2, of TSQR almost 4", factorisations,
         "scaled: up to a million rows; all sites share two cores",
         "Two cores compute, however many ranks there are, so four sites gain no more than two do. The round trips are those of "
         "scenarios/nine-sites.toml: Orsay-Bordeaux has 13.2 ms, where the paper's Table 1 has 7.8. results/tsqr has a model of sites "
         "with cores of their own."),
]

HEAD = """\
# The papers' tables and figures, measured {how}

`make papers` measures them on emulated grids with `causeway bench`, and writes the rows, this page
from the rows, and a report (target/papers/report.html). The cells of one experiment ran in turn
(A B A B); a row says where it joins two. A time is the median of the runs' medians unless a row
says something else; in brackets are the least and the largest run, of a ratio those of two runs of
one turn. `runs` says how many. `reproduced` means: at the paper's scale. `scaled` says what is
smaller.

- commit: {commit}

Host: {host}.

| paper | table or figure | published | here | runs | how | why it differs |
|---|---|---|---|---|---|---|
"""


def index(found: dict, repeated: dict, known: tuple[str, str], quick: bool) -> str:
    """The page; `known` are the commit and the host of the rows, `repeated` is what a second
    measurement found."""
    commit, host = known
    text = HEAD.format(commit=commit, host=host, how="in a hurry" if quick else "again")
    for item in ITEMS:
        used.clear()
        here = item.here(found) or "not measured in this run"
        row = [item.paper, item.what, item.published, here, used.text(), item.state, item.differs]
        text += "| " + " | ".join(cell.replace("|", "/") for cell in row) + " |\n"
    return text + "\n" + second.text(found, repeated) + textwrap.dedent("""\
        The rows are in the .csv files: a line for each value of each run, with what TCP did in it.
        messages.json has what each benchmark sends.
        """)
