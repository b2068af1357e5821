"""What README.md says, computed from tsqr, tree and with-q.csv."""

from figures import groups, line, median, read, values, where

PROGRAMS = ("tsqr", "pdgeqrf")
COLUMNS, BLOCK = 64, 16
# What ten and more gigabytes took once.
ONCE = "16000000"
PLACES = {(1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (4, 4)}


def times(rows, program, sites, ranks, count):
    own = where(rows, program=program, sites=sites, ranks=ranks, rows=count)
    # An earlier build had another tree over sites.
    return values((row for row in own if row["tree"] != "binomial"), "time_s")


def middle(numbers):
    return median([{"x": number} for number in numbers], "x")


def crossings(sites):
    """Messages between sites, at least."""
    return (sites - 1) * (5 * COLUMNS - 4 + 2 * COLUMNS // BLOCK)


def texts():
    rows = read("tsqr.csv")
    counts = sorted({row["rows"] for row in rows} - {ONCE}, key=int)
    for sites, ranks in sorted(PLACES):
        for count in counts:
            both = [times(rows, program, sites, ranks, count) for program in PROGRAMS]
            if all(both):
                shown = [f"{middle(own):.3f} ({min(own):.3f})" for own in both]
                runs = ", ".join(str(len(own)) for own in both)
                yield line(sites, ranks, count, runs, *shown, f"{middle(both[1]) / middle(both[0]):.1f}")

    once = [times(rows, program, sites, ranks, ONCE) for sites, ranks in ((1, 2), (4, 4)) for program in PROGRAMS]
    if all(once):
        near, far = ([f"{own[0]:.1f} s" for own in pair] for pair in (once[:2], once[2:]))
        yield f"one site, two ranks, tsqr {near[0]} and PDGEQRF {near[1]}; four sites, a rank each, {far[0]} and {far[1]}."

    trees = {"binomial": "binomial by number of site", "links": "made for the links"}
    for (tree,), own in groups(read("tree.csv"), "tree").items():
        yield line(trees[tree], len(own), f"{median(own, 'time_s') * 1000:.1f}", f"{min(values(own, 'time_s')) * 1000:.1f}")

    yield line("tsqr", "2 (S - 1)", 2, 6)
    yield line("PDGEQRF, at least", "(S - 1) (5 N - 4 + 2 N / NB)", crossings(2), crossings(4))

    waits = {}
    for program, name in zip(PROGRAMS, ("tsqr", "PDGEQRF")):
        alone = middle(times(rows, program, 1, 1, "1000"))
        waits[program] = {1: 0.0} | {sites: middle(times(rows, program, sites, sites, "1000")) - alone for sites in (2, 4)}
        digits = 1 if program == "tsqr" else 0
        yield line(name, *(f"{waits[program][sites] * 1000:.{digits}f} ms" for sites in (2, 4)))

    def modelled(program, count, ranks):
        """Seconds on one, two and four sites."""
        largest = min(count, 4_000_000)
        alone = min(times(rows, program, 1, 1, largest)) * count / largest
        return [alone / (sites * ranks) + waits[program][sites] for sites in (1, 2, 4)]

    for count, ranks in ((100_000, 1), (400_000, 1), (1_000_000, 1), (4_000_000, 1), (4_000_000, 32), (33_554_432, 32)):
        cells = []
        for program in PROGRAMS:
            own = modelled(program, count, ranks)
            cells += [", ".join(f"{time:.3f}" for time in own), f"{own[0] / own[2]:.2f}"]
        yield line(count, ranks, *cells)

    rows = read("with-q.csv")
    for (sites, count), own in groups(rows, "sites", "rows").items():
        both = [where(own, program=program) for program in PROGRAMS]
        fastest = [f"{min(values(one, 'time_s')):.3f}" for one in both]
        crossed = [0, 2, 6][int(sites) // 2], 456 * (int(sites) - 1)
        yield line(sites, count, ", ".join(sorted({str(len(own)) for own in both}, reverse=True)), fastest[0], crossed[0], fastest[1], crossed[1])
