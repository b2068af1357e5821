"""What README.md says, computed from the JSON files."""

import json

import figures
from figures import line

PROGRAMS = {
    "adds-openmpi": "`adds`, Open MPI",
    "adds-mpich": "`adds`, MPICH",
    "long-openmpi": "`adds`, longer, Open MPI",
    "long-mpich": "`adds`, longer, MPICH",
    "start-openmpi": "`start`, Open MPI",
    "start-mpich": "`start`, MPICH",
    "ray2mesh": "`ray2mesh`",
    "tsqr": "`tsqr`",
    "pdgeqrf": "`pdgeqrf`",
}


def found_in(name):
    return json.loads((figures.place / f"{name}.json").read_text(encoding="utf-8"))


def transfer_of(found):
    """The seconds for which a program waits for bytes: 0 where the interval of these reaches 0."""
    data = found["needs"]["bytes"]
    return data["median"] * 8 / found["link"]["rate_bits_per_second"] if data["least"] > 0 else 0


def predicted_for(found):
    """The seconds that a program should take over two sites."""
    needs = found["needs"]
    return needs["own_seconds"] + needs["trips"]["median"] * found["link"]["round_trip_us"] / 1e6 + transfer_of(found)


def largest_error(names):
    """How far a prediction is from what was measured, in per cent, for the worst of these."""
    return max(100 * abs(predicted_for(found_in(name)) / found_in(name)["measured"] - 1) for name in names)


def row(name, label):
    found = found_in(name)
    needs, one_site = found["needs"], found["one_site"]
    trips, data, own = needs["trips"], needs["bytes"], needs["own_seconds"]
    transfer, predicted = transfer_of(found), predicted_for(found)
    longest = (one_site - own / 2 - transfer) / trips["median"] * 1e3
    waits = f"{trips['median']:.0f} ({trips['least']:.0f} to {trips['most']:.0f})"
    volume = f"{data['median'] / 1e6:.1f} MB" if data["least"] > 0 else "within the noise"
    times = [f"{value:.2f} s" for value in (one_site, own)]
    pair = f"{predicted:.2f} s, {found['measured']:.2f} s"
    verdict = (f"{predicted - own / 2:.2f} s", f"{longest:.1f} ms")
    if name.startswith("start"):
        verdict = ("-", "-")
    return line(label, *times, waits, volume, pair, *verdict)


def without_start(mpi):
    """What `adds` takes beyond `start`: at one site, with twice the ranks at 11.6 ms, and the
    longest round trip at which that pays, in ms."""
    whole, start = found_in(f"adds-{mpi}"), found_in(f"start-{mpi}")
    one_site = whole["one_site"] - start["one_site"]
    own = whole["needs"]["own_seconds"] - start["needs"]["own_seconds"]
    trips = whole["needs"]["trips"]["median"] - start["needs"]["trips"]["median"]
    twice = own / 2 + trips * whole["link"]["round_trip_us"] / 1e6
    return one_site, trips, twice, (one_site - own / 2) / trips * 1e3


def texts():
    for name, label in PROGRAMS.items():
        yield row(name, label)
    both = [without_start(mpi) for mpi in ("openmpi", "mpich")]
    for label, (one_site, trips, twice, longest) in zip(("Open MPI", "MPICH"), both):
        yield line(f"`adds` without its start, {label}", f"{one_site:.2f} s", f"{trips:.0f}", f"{twice:.2f} s", f"{longest:.1f} ms")
    starts = [name for name in PROGRAMS if name.startswith("start")]
    yield f"differ by {largest_error(PROGRAMS.keys() - starts):.1f} % at most"
    yield f"by {largest_error(starts):.1f} %"
    longer = [found_in(f"long-{mpi}") for mpi in ("openmpi", "mpich")]
    yield f"differ by {100 * apart(found['one_site'] for found in longer):.1f} % at one site"
    yield f"{100 * apart(pays_up_to(found) for found in longer):.1f} % in the longest round trip that pays"


def apart(pair):
    one, other = sorted(pair)
    return other / one - 1


def pays_up_to(found):
    return (found["one_site"] - found["needs"]["own_seconds"] / 2) / found["needs"]["trips"]["median"]
