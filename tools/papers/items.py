"""What each table and figure of the four papers shows, what was measured for it here, and why the
two differ. readers.py reads the rows."""

import textwrap
from typing import Callable, NamedTuple

import counts
import second
from readers import (
    MPICH, OPEN, POINTS, RELAY, SITES, TOGETHER, busy, cluster_means, cluster_suite, elsewhere,
    factorisations, in_cluster, large_rates, latencies, means, networks, operations,
    over_techniques, overhead, pauses, pieces, rates, rays, relative, signals, techniques, used,
)


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


H, V, M, Q = "hablot-2007", "vinter-2004", "hablot-2009 (MPI5000)", "coti-2011 (QCG-OMPI)"
SCALED = "scaled: 2+2 ranks for 8+8; class A (IS, CG, MG, FT) and W (EP, LU, BT, SP) for B: two cores carry no more"
SPINS = "MPICH's ranks wait busily: four of them on two cores keep each other from running, and the emulator."
EAGER = "What is tuned are eager limits and buffers: as it comes, an MPI waits a round trip for leave before each larger message."
DEFAULT = "What runs as it comes did not run in turn with the rest."
CLUSTERED = "scaled: 2 ranks on two nodes for 32 processors"
WITHIN = "Open MPI, MPICH and Intel MPI of today within one site, each as it comes, a rank a core."
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
    Item(H, "Fig. 2, four MPIs, to 64 MB", "940 Mbit/s", large_rates("site", "default"), "scaled: no rate bounds the emulated LAN",
         "Three families of MPIs, Open MPI in two versions, each as it comes, in turn."),
    Item(H, "Fig. 3, four MPIs, to 64 MB", "at most 120 Mbit/s", large_rates("direct", "default"), "reproduced", ""),
    Item(H, "Fig. 4, four MPIs, to 64 MB", "910 Mbit/s, half of it at 1 MB", large_rates("direct", "tuned"), "reproduced",
         "Intel MPI has an eager limit of at most 256 kB, for the sake of memory (docs/settings.md): 1 MB waits a round trip for leave, tuned or not."),
    Item(H, "Fig. 4, four MPIs, through Causeway", "-", large_rates("causeway", "tuned"), "beyond the paper", ""),
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
    Item(V, "Figs. 2 to 6 as the paper has them: three MPIs in one cluster", "on average of 4 MB collectives MESH-MPI is 4.6 times as fast as LAM, 4.3 times as MPICH",
         cluster_means, CLUSTERED, f"Eleven operations. {WITHIN}"),
    Item(V, "Fig. 2: point to point in one cluster, 0 B", "MPICH's concurrent send and receive 12 times MESH-MPI's", in_cluster(POINTS, 0), CLUSTERED, WITHIN),
    Item(V, "Fig. 3: point to point in one cluster, 4 MB", "MPICH slowest, the others within 2 %", in_cluster(POINTS, 4 << 20), CLUSTERED, WITHIN),
    Item(V, "Fig. 4: collectives in one cluster, 8 B", "LAM's Allgatherv 11 times MESH-MPI's, Bcast 12 times, MPICH's 7 times", in_cluster(TOGETHER, 8), CLUSTERED, WITHIN),
    Item(V, "Figs. 5, 6: collectives in one cluster, 4 MB", "the best MPI 4.3 and 4.6 times faster on average", in_cluster(TOGETHER, 4 << 20), CLUSTERED, WITHIN),
    Item(V, "Figs. 7 to 9: NPB in one cluster, and the worth of the difference", "MESH-MPI 14.5 % and 37.1 % faster: 206 and 530 euros of a node of 1428",
         cluster_suite, "scaled: 2 ranks on two nodes, class A (IS, CG, MG, FT) and W (EP, LU) for C on 32; two MPIs",
         "Each MPI as it comes. BT and SP need a square number of ranks: four on two cores measure how ranks wait. Intel MPI's packages "
         "bring no Fortran compiler, so it has no row. The worth is the part of a node's price by which the other MPI needs less of it."),
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
         over_techniques(4 << 20), "scaled: Rennes-Nancy, 1 Gbit/s", "Of one message of 4 MB. Punched lanes are of QUIC. What they found of the path when they came up, both ways at once on two cores, stays: in one such lab 421 Mbit/s one way, and 1072, with losses, the other (`rate_bits_per_second` of its status). Messages of 4 MB are too short to raise it. These took 57 to 91 ms for one, dialled lanes of QUIC 43 to 47 (rows of these and of that status were not kept)."),
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
{later}
| paper | table or figure | published | here | runs | how | why it differs |
|---|---|---|---|---|---|---|
"""


def index(found: dict, repeated: dict, known: tuple[str, str, str], quick: bool) -> str:
    """The page; `known` are the commit and the host of the rows, and what was measured at another
    time, `repeated` is what a second measurement found."""
    commit, host, later = known
    later = "\n" + textwrap.fill(f"Measured later: {later}.", 100) + "\n" if later else ""
    text = HEAD.format(commit=commit, host=host, later=later, how="in a hurry" if quick else "again")
    for item in ITEMS:
        used.clear()
        here = item.here(found) or "not measured in this run"
        row = [item.paper, item.what, item.published, here, used.text(), item.state, item.differs]
        text += "| " + " | ".join(cell.replace("|", "/") for cell in row) + " |\n"
    return text + "\n" + second.text(found, repeated) + textwrap.dedent("""\
        The rows are in the .csv files: a line for each value of each run, with what TCP did in it.
        messages.json has what each benchmark sends.
        """)
