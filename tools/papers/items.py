"""What each table and figure of the four papers shows, what was measured for it here, and why the
two differ."""

import math
import statistics
import textwrap
from typing import Callable, Iterable, NamedTuple

import counts

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


def entries(found: dict, name: str, **wanted: object) -> list[dict]:
    """The entries of an experiment with these values; an MPI is named without its version."""
    def fits(entry: dict) -> bool:
        return all(str(entry[key]).startswith(value) if key == "mpi" else entry[key] == value
                   for key, value in wanted.items())
    return [entry for entry in found.get(name, {}).get("entries", []) if fits(entry)]


def microseconds(found: dict, name: str, key: str = "min", **wanted: object) -> str | None:
    """A time of one entry, without its decimals."""
    all_ = entries(found, name, **wanted)
    return f"{all_[0][key]:.0f}" if all_ else None


def rate(entry: dict) -> float:
    """Mbit/s of a message's median."""
    return entry["size_bytes"] * 8 / entry["median"]


def joined(parts: Iterable[str | None], between: str = "; ") -> str | None:
    """Those that are there; None where none is."""
    there = [part for part in parts if part]
    return between.join(there) or None


def latencies(found: dict) -> str | None:
    """Table IV of hablot-2007."""
    def row(name: str, label: str, **wanted: object) -> str | None:
        times = [microseconds(found, name, way=way, size_bytes=1, **wanted) for way in ("site", "direct", "causeway")]
        return f"{label} {times[0]} / {times[1]} / {times[2]} us" if None not in times else None
    mpis = [row("pingpong", mpi, mpi=mpi, settings="tuned") for mpi in (OPEN, MPICH)]
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
                best = max(own, key=rate)
                one = [rate(entry) for entry in own if entry["size_bytes"] == 1 << 20]
                at = f", 1 MB {one[0]:.0f}" if one else ""
                parts.append(f"{mpi} {rate(best):.0f}{at}")
        ours = joined(parts)
        return ours and f"{ours} Mbit/s"
    return read


def overhead(found: dict) -> str | None:
    """What both gateways add to a message without an MPI."""
    direct, ours = ([entry for entry in entries(found, "tcp", way=way) if entry["size_bytes"]] for way in ("direct", "causeway"))
    if not direct or not ours:
        return None
    least = {entry["size_bytes"]: entry for entry in direct}
    one = [entry["median"] - least[1]["median"] for entry in ours if entry["size_bytes"] == 1]
    last = ours[-1]
    return f"+{one[0]:.0f} us; {rate(least[last['size_bytes']]):.0f} -> {rate(last):.0f} Mbit/s"


def operations(names: Iterable[str], size: int) -> Callable[[dict], str | None]:
    """Times of operations of one size: direct and through Causeway."""
    def read(found: dict) -> str | None:
        parts = []
        for mpi in (OPEN, MPICH):
            pairs = []
            for name in names:
                times = [microseconds(found, "operations", "median", operation=name, mpi=mpi, way=way, measure="once",
                                      size_bytes=size) for way in ("direct", "causeway")]
                if None not in times:
                    pairs.append(f"{name} {float(times[0]) / 1e3:.2f} / {float(times[1]) / 1e3:.2f}")
            parts.append(f"{mpi}: {', '.join(pairs)}" if pairs else None)
        ours = joined(parts)
        return ours and f"last end minus first start, direct / Causeway, ms: {ours}"
    return read


def suite(found: dict, **wanted: object) -> dict[str, dict]:
    """Entries of the NAS Parallel Benchmarks by their names."""
    all_ = entries(found, "npb-large", **wanted) + entries(found, "npb-small", **wanted)
    return {entry["operation"]: entry for entry in all_}


def shares(above: dict[str, dict], below: dict[str, dict]) -> str | None:
    """Relative times of the benchmarks that both have; one that tells 0.00 s is left out."""
    pairs = [f"{name} {above[name]['median'] / below[name]['median']:.2f}" for name in above
             if below.get(name, {}).get("median")]
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
        for way in ("direct", "causeway"):
            times = [entry["median"] for entry in suite(found, mpi=mpi, way=way).values()]
            if times and all(times):
                found_means[f"{mpi}, {way}"] = math.exp(sum(map(math.log, times)) / len(times))
    if not found_means:
        return ABSENT
    best = min(found_means.values())
    return "; ".join(f"{name}: {mean / best:.3f}" for name, mean in found_means.items())


def signals(name: str, *keys: str) -> Callable[[dict], str | None]:
    """Counts of TCP in the runs of the benchmarks: direct and through Causeway."""
    def read(found: dict) -> str | None:
        if not any(key.startswith("npb") for key in found):
            return ABSENT
        counts = {}
        for experiment in ([name] if name else ["npb-large", "npb-small"]):
            for row in found.get(experiment, {}).get("network", []):
                if row["mpi"].startswith(OPEN) and row["way"] != "site":
                    shown = "/".join("-" if row[key] is None else f"{row[key]:.0f}" for key in keys)
                    counts.setdefault(row["program"], {})[row["way"]] = shown
        parts = [f"{program} {ways.get('direct', '-')} -> {ways.get('causeway', '-')}" for program, ways in counts.items()]
        return ", ".join(parts) or None
    return read


def techniques(size: int) -> Callable[[dict], str | None]:
    """Messages between sites of three, direct and through Causeway, and through a relay."""
    def read(found: dict) -> str | None:
        parts = []
        for name, label in (("orsay-rennes", "Orsay-Rennes"), ("orsay-bordeaux", "Orsay-Bordeaux"), ("relay", "through a relay")):
            own = [entry for entry in entries(found, name) if entry["size_bytes"] == size]
            if own and size == 1:
                parts.append(f"{label} " + ", ".join(f"{e['way']} {2 * e['median'] / 1e6:.4f} s" for e in own))
            elif own:
                parts.append(f"{label} " + ", ".join(f"{e['way']} {rate(e):.0f} Mbit/s" for e in own))
        return joined(parts)
    return read


def medians(rows: list[dict], keys: Iterable[str], value: Callable[[dict], float]) -> dict[tuple, float]:
    """The median of a value over the rows that agree in these columns."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(value(row))
    return {key: statistics.median(group) for key, group in groups.items()}


def rays(found: dict) -> str | None:
    """Times of ray2mesh's three forms, and the messages of rank 0 with other sites."""
    rows, keys = found.get("ray2mesh", []), ("sites", "ranks", "form")
    phases = ("broadcast_s", "rays_s", "exchange_s", "output_s")
    times = medians(rows, keys, lambda row: sum(float(row[phase]) for phase in phases))
    far = medians(rows, keys, lambda row: int(row["messages_far"]))
    parts = []
    for sites, ranks in sorted({key[:2] for key in times}):
        own = [(f"{times[sites, ranks, form]:.2f}", f"{far[sites, ranks, form]:.0f}") for form in ("vanilla", "grid", "hierarchical")]
        count = "1 site" if sites == "1" else f"{sites} sites"
        parts.append(f"{count}, {ranks} ranks: {' / '.join(time for time, _ in own)} s, "
                     f"{' / '.join(messages for _, messages in own)} messages")
    ours = joined(parts)
    return ours and f"vanilla / grid collectives / hierarchical: {ours}"


def factorisations(found: dict) -> str | None:
    """Times of TSQR and ScaLAPACK with one rank a site."""
    times = medians(found.get("tsqr", []), ("rows", "program", "sites"), lambda row: float(row["time_s"]))
    parts = []
    for count in sorted({key[0] for key in times}, key=int):
        pairs = []
        for program, name in (("tsqr", "TSQR"), ("pdgeqrf", "ScaLAPACK")):
            own = [f"{times[count, program, sites]:.3f}" for sites in "124" if (count, program, sites) in times]
            pairs.append(f"{name} {' / '.join(own)}")
        parts.append(f"{int(count):,} rows: {', '.join(pairs)}")
    ours = joined(parts)
    return ours and f"s on 1 / 2 / 4 sites, a rank each: {ours}"


def pauses(found: dict) -> str | None:
    """Times of the benchmarks with and without slow start after a pause."""
    if not any(name.startswith("npb") for name in found):
        return ABSENT
    with_, without = ({entry["operation"]: entry["median"] for entry in entries(found, name)}
                      for name in ("npb-slow-start", "npb-no-slow-start"))
    parts = [f"{name} {with_[name]:.2f} -> {without[name]:.2f}" for name in with_ if name in without]
    return ", ".join(parts) or None


def pieces(found: dict) -> str | None:
    """Times of a gather that is cut into pieces, by their number."""
    parts = []
    for name in found:
        if name.startswith("gather-"):
            time = microseconds(found, name, "median", measure="once")
            parts.append(time and f"{name.removeprefix('gather-')}: {float(time) / 1e3:.1f}")
    return joined(parts, ", ")


def elsewhere(text: str) -> Callable[[dict], str | None]:
    """A figure that another directory has."""
    return lambda _: text


H, V, M, Q = "hablot-2007", "vinter-2004", "hablot-2009 (MPI5000)", "coti-2011 (QCG-OMPI)"
SCALED = "scaled: 2+2 ranks for 8+8; class A (IS, CG, MG, FT) and W (EP, LU, BT, SP) for B: two cores carry no more"
ITEMS = [
    Item(H, "Table I: features", "four MPIs of 2007", elsewhere("report.html, 'What MPIs have for grids'"), "reproduced",
         "The MPIs are today's; the last row has what Causeway adds."),
    Item(H, "Table II: messages of the NPB",
         "EP 192 x 8 B + 68 x 80 B; CG 126479 x 8 B + 86944 x 147 kB; MG 50809 of 4 B to 130 kB; LU 1200000 x 960 to 1040 B; "
         "SP 57744 x 45 to 54 kB + 96336 x 100 to 160 kB; BT 28944 x 26 kB + 48336 x 146 to 156 kB; "
         "IS 176 x 1 kB + 176 x 30 MB; FT 320 x 1 B + 352 x 128 kB", counts.table(is_between=False), "reproduced",
         "Class B on 16 ranks, Open MPI; groups of a twentieth of all messages or bytes. Of an operation the calls of all ranks "
         "and the bytes that each gives are shown: FT's 33.6 MB are 2.1 MB to each rank, as MPI5000's Table 2 has them."),
    Item(H, "Fig. 1, Table III: testbed", "Rennes, Nancy; 11.6 ms, 1 Gbit/s; Opteron, Linux 2.6.18",
         elsewhere("scenarios/rennes-nancy.toml; one host, below"), "reproduced",
         "All nodes share two cores, and the LANs have no rate."),
    Item(H, "Table IV: latency, least of 200", "cluster / grid: TCP 41 / 5812, MPICH2 46 / 5818, Open MPI 46 / 5820 us", latencies,
         "reproduced", "Nodes of one host are nearer to each other than hosts. Causeway adds its two gateways."),
    Item(H, "Fig. 2: rate in a cluster, default", "940 Mbit/s", rates("site", "default"), "scaled: no rate bounds the emulated LAN",
         "Memory is what bounds it."),
    Item(H, "Fig. 3: rate between sites, default", "at most 120 Mbit/s", rates("direct", "default"), "reproduced",
         "Kernels of today let buffers grow by themselves; what is left of the loss is the eager limit."),
    Item(H, "Fig. 4: rate between sites, tuned", "910 Mbit/s, half of it at 1 MB", rates("direct", "tuned"), "reproduced",
         "With the eager limit raised as well, 1 MB has more than half."),
    Item(H, "Fig. 4, through Causeway", "-", rates("causeway", "tuned"), "beyond the paper", "Nothing was set by hand."),
    Item(H, "Fig. 5: NPB beside MPICH2", "bars around 1", relative({"mpi": OPEN, "way": "direct"}, {"mpi": MPICH, "way": "direct"}),
         SCALED, "Open MPI over MPICH, both of today, tuned, direct."),
    Item(H, "Fig. 6: NPB on the grid beside one cluster", "EP near 1, half of them below 1.2, CG and MG worst",
         relative({"way": "direct"}, {"way": "site"}), SCALED, "Smaller problems wait longer for the same round trips."),
    Item(H, "Fig. 6, through Causeway", "-", relative({"way": "causeway"}, {"way": "site"}), "beyond the paper", ""),
    Item(H, "Fig. 7: 16 nodes beside 4", "speed-up of 3 to 4 for LU, BT, FT, SP", elsewhere("-"),
         "not carried: more ranks than cores give no speed-up", ""),
    Item(V, "Fig. 1: the cluster", "a drawing", elsewhere("-"), "not carried: nothing is measured there", ""),
    Item(V, "Fig. 2: point to point, 0 B", "three MPIs within 62.5 and 125 us, but for MPICH's Sendrecv", operations(POINTS, 0),
         "scaled: 2+2 ranks over two sites for 32 in a cluster", "A round trip between sites is 11.6 ms."),
    Item(V, "Fig. 3: point to point, 4 MB", "MPICH slowest, the others within 2 %", operations(POINTS, 4 << 20),
         "scaled: 2+2 ranks", ""),
    Item(V, "Fig. 4: collectives, 8 B", "the best MPI 7 to 12 times faster at Bcast", operations(TOGETHER, 8),
         "scaled: 2+2 ranks", "Two sites: what crosses more than once waits more than once."),
    Item(V, "Figs. 5, 6: collectives, 4 MB", "the best MPI 4.3 and 4.6 times faster on average", operations(TOGETHER, 4 << 20),
         "scaled: 2+2 ranks", ""),
    Item(V, "Figs. 7, 8: NPB suite", "14.5 and 37.1 % slower than the best", means, SCALED, "Geometric means, relative to the best."),
    Item(V, "Fig. 9: value of the difference", "206 and 530 euros a node; 292 and 749 with Norway's electricity",
         elsewhere("report.html, 'What the difference is worth'"), "reproduced",
         "A unit test gives the paper's values from its inputs. The page has inputs of today, to be changed."),
    Item(M, "Figs. 1 to 4: split connections, components, header, testbed", "drawings", elsewhere("ARCHITECTURE.md; docs/gateway.md"),
         "not carried: nothing is measured there", ""),
    Item(M, "4.2: what two proxies add", "+141 us at 1 B; 840 -> 785 Mbit/s at 33 MB", overhead, "reproduced", ""),
    Item(M, "Table 1: duplicate ACKs, RTOs, idle timeouts", "losses with FT only; idle timeouts with BT, FT, LU",
         signals("", "out_of_order", "timeouts", "idle_restarts"), SCALED,
         "Out of order / RTO / restarts after silence, direct -> Causeway. Kernels do not count restarts: '-'."),
    Item(M, "Table 2: data between sites", "BT 2.8, CG 2.37, FT 5.9, IS 0.74, LU 0.62, MG 0.19, SP 5.1 GB",
         signals("", "crossed_megabytes"), SCALED, "MB across the lanes."),
    Item(M, "Table 2: writes between sites",
         "BT 9648 x 26 kB + 16112 x 160 kB; CG 15800 x 150 kB; LU 200000 x 1 kB + 2000 x 200 kB; MG 8842 of 40 B to 135 kB; "
         "SP 19248 x 45 to 54 kB + 32112 x 100 to 160 kB", counts.table(is_between=True), "reproduced",
         "Class B on 8+8 ranks: messages between the two halves, operations apart."),
    Item(M, "Table 3: classes of the NPB", "LU below 1 kB, CG, MG, BT and SP 1 to 200 kB, IS and FT above; IS and FT seldom, CG and MG often",
         counts.classes, "scaled: size and number alone; how often in time depends on the machine",
         "Mean bytes of a call that sends, and such calls of a rank."),
    Item(M, "Table 4: idle timeouts", "BT 331 -> 323, CG 725 -> 427, LU 185 -> 179, MG 73 -> 70, SP 487 -> 426",
         signals("", "idle_restarts"), SCALED,
         "Restarts of lanes, an upper bound (docs/status.md). Under BBR they shrink no window. Kernels count none."),
    Item(M, "Table 5: without slow start after idle", "BT 204 -> 171, CG 122 -> 122, LU 66 -> 71, MG 11 -> 11, SP 242 -> 203 s",
         pauses, "scaled: class W, 2+2 ranks, Open MPI, direct",
         "With -> without, s. Class W pauses too shortly for the kernel to make a window smaller; "
         "`causeway tune --verify --direct` measures the setting by messages after 300 ms (docs/tune.md)."),
    Item(M, "Fig. 5: NPB with the layer", "BT 0.65, SP 0.72, LU 0.85; FT 2.86 times slower", relative({"way": "causeway"}, {"way": "direct"}),
         SCALED, "Causeway over direct, both tuned: the paper's direct runs lost time that tuning alone gives back today."),
    Item(M, "4.3.1: Alltoall of 2 MB", "2.74 times slower with the layer", elsewhere("0.58 of direct: results/alltoall"), "measured earlier, with 4+4 ranks", ""),
    Item(M, "Fig. 6: NPB beside two flows", "better with the layer for BT, LU, SP",
         lambda found: shares({e["operation"]: e for e in entries(found, "npb-busy", way="causeway")},
                              {e["operation"]: e for e in entries(found, "npb-busy", way="direct")}) or ABSENT,
         "scaled: class W, 2+2 ranks", "Causeway over direct beside two flows from the first site to the second."),
    Item(M, "Table 6: losses beside two flows", "DupACK/RTO: BT 757/56 -> 320/1, LU 327/232 -> 174/41, MG 94/53 -> 48/4, SP 1409/778 -> 667/131",
         signals("npb-busy", "out_of_order", "timeouts"), "scaled: class W, 2+2 ranks",
         "Flows that ran beside are counted on the direct way: they start at the same nodes."),
    Item(Q, "Figs. 1 to 3: architecture, life cycle, job profile", "drawings and an excerpt", elsewhere("ARCHITECTURE.md; docs/topology.md"),
         "not carried: nothing is measured there", ""),
    Item(Q, "Table 3: the platform's clusters", "Grid'5000 and a cluster of multicores", elsewhere("-"),
         "not carried: the emulated grid stands for it", ""),
    Item(Q, "Table 1: latency of the techniques", "Orsay-Rennes 0.0103 direct, 0.0106 relay, 0.0103 traversing; Orsay-Bordeaux 0.0078, 0.0084, 0.0078 s",
         techniques(1), "reproduced", "Round trips. The relay is Lyon, between Rennes and Nancy (11.6 ms): 14 ms by way of it."),
    Item(Q, "Table 2: rate of the techniques", "136 direct, 76 relay, 138 traversing Mbit/s", techniques(4 << 20), "reproduced",
         "Of one message of 4 MB. A relay carries lanes unread, and both its links have the full rate."),
    Item(Q, "Fig. 4: pieces of a gather", "eight pieces are best", pieces,
         "scaled: 4 MB of each of 2+2 ranks, MPICH, through Causeway",
         "ms for each number of pieces. 256 kB, which is 16 pieces, is what is taken without being told."),
    Item(Q, "Fig. 5: Bcast and Reduce, standard and for grids", "Bcast always better; Reduce up to 100 kB",
         operations(("bcast", "reduce"), 64 << 10), "scaled: 2+2 ranks", "64 kB, direct / Causeway."),
    Item(Q, "Figs. 6, 8: how Ray2mesh and TSQR go about it", "drawings", elsewhere("examples/ray2mesh, examples/tsqr"), "reproduced", ""),
    Item(Q, "Fig. 7: Ray2mesh over three clusters", "9.5 % less time with grid collectives, 35 % less with bosses, too, at 180 processes",
         rays, "scaled: 2 ranks a site, which share two cores", "What can be seen are messages; results/ray2mesh has a model of 180 ranks."),
    Item(Q, "Fig. 9: QR of 64 columns", "four sites: speed-up of ScaLAPACK hardly 2, of TSQR almost 4", factorisations,
         "scaled: up to a million rows; all sites share two cores",
         "More sites give no more cores here: what is left is what each waits for. results/tsqr has a model of sites with cores of their own."),
]

HEAD = """\
# The papers' tables and figures, measured {how}

`make papers` measures them on emulated grids with `causeway bench`, and writes this page, the rows
and `report.html`. Each cell ran in turn with the others (A B A B). Times are medians unless a row
says something else. `reproduced` means: at the paper's scale. `scaled` says what is smaller.

Host: {host}.

| paper | table or figure | published | here | how | why it differs |
|---|---|---|---|---|---|
"""


def index(found: dict, host: dict, quick: bool) -> str:
    """The page."""
    facts = ", ".join(f"{host[key]}" for key in ("processor", "cores", "kernel", "date (UTC)") if key in host)
    text = HEAD.format(host=facts.replace("\n", " "), how="in a hurry" if quick else "again")
    for item in ITEMS:
        here = item.here(found) or "not measured in this run"
        row = [item.paper, item.what, item.published, here, item.state, item.differs]
        text += "| " + " | ".join(cell.replace("|", "/") for cell in row) + " |\n"
    return text + "\n" + textwrap.dedent("""\
        The rows are in the .csv files: a line for each value of each run, with what TCP did in it.
        messages.json has what each benchmark sends.
        """)
