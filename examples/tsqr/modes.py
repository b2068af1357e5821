"""modes.py: a heated plate is simulated, and its temperatures are taken apart into principal modes.

A spot of heat runs over the plate in a circle. Each rank has some lines of the plate, and keeps its
temperatures at some times: a column for each time. The matrix A of all ranks is tall. TSQR gives
A = Q R, numpy.linalg.svd of the small R gives its singular values and U, and Q U are the modes: the
fields whose sums, a factor each, come nearest to all temperatures (proper orthogonal
decomposition).
Between sites go a line of the plate for each step and, for the modes, three messages for each edge
of the tree.

    mpirun --oversubscribe -n 4 python3 modes.py --side 400 --times 64
"""

import argparse
import sys
import time

import causeway_tsqr
import numpy
from mpi4py import MPI

COMM = MPI.COMM_WORLD
# The time step of an explicit scheme must be below a quarter in these units.
DIFFUSION = 0.2


def own_lines(side: int, rank: int, ranks: int) -> tuple[int, int]:
    return side * rank // ranks, side * (rank + 1) // ranks


class Plate:
    """This rank's lines of a square plate, with a line more at either end. Its rim stays at 0."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.first, self.end = own_lines(side, COMM.rank, COMM.size)
        self.t = numpy.zeros((self.end - self.first + 2, side + 2))
        self.line, self.column = numpy.mgrid[self.first:self.end, 0:side] / side
        self.above = COMM.rank - 1 if COMM.rank > 0 else MPI.PROC_NULL
        self.below = COMM.rank + 1 if COMM.rank < COMM.size - 1 else MPI.PROC_NULL

    def step(self, turn: float) -> None:
        t = self.t
        COMM.Sendrecv(t[1], self.above, recvbuf=t[-1], source=self.below)
        COMM.Sendrecv(t[-2], self.below, recvbuf=t[0], source=self.above)
        x, y = 0.5 + 0.3 * numpy.cos(2 * numpy.pi * turn), 0.5 + 0.3 * numpy.sin(2 * numpy.pi * turn)
        heat = numpy.exp(-((self.line - x) ** 2 + (self.column - y) ** 2) / 0.01)
        around = t[:-2, 1:-1] + t[2:, 1:-1] + t[1:-1, :-2] + t[1:-1, 2:] - 4 * t[1:-1, 1:-1]
        t[1:-1, 1:-1] += DIFFUSION * around + heat

    def field(self) -> numpy.ndarray:
        return self.t[1:-1, 1:-1].ravel()


def simulate(side: int, times: int, steps: int) -> numpy.ndarray:
    """This rank's rows: a row for each of its places, a column for each time."""
    plate = Plate(side)
    snapshots = numpy.zeros((plate.field().size, times), order="F")
    told = time.monotonic()
    for i in range(times):
        for j in range(steps):
            plate.step((i * steps + j) / (times * steps))
        snapshots[:, i] = plate.field()
        if COMM.rank == 0 and (time.monotonic() - told > 1 or i == times - 1):
            told = time.monotonic()
            print(f"modes: time {i + 1} of {times}", file=sys.stderr, flush=True)
    return snapshots


def decompose(tree: causeway_tsqr.Tree, snapshots: numpy.ndarray, wanted: int) -> tuple:
    """This rank's rows of the first modes, all singular values, and the factors of each time."""
    with tree.factor(snapshots) as factors:
        u, singular, factor = numpy.linalg.svd(factors.r)
        return factors.multiply(u[:, :wanted], wanted), singular, factor[:wanted] * singular[:wanted, None]


def square_sum(values: numpy.ndarray) -> float:
    return COMM.allreduce(float(numpy.sum(values * values)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--side", type=int, default=200, help="places along the plate (200)")
    parser.add_argument("--times", type=int, default=64, help="times that are kept (64)")
    parser.add_argument("--steps", type=int, default=20, help="steps from one to the next (20)")
    parser.add_argument("--modes", type=int, default=8, help="modes that are shown (8)")
    options = parser.parse_args()
    if options.side < COMM.size or not 1 <= options.modes <= options.times <= options.side**2:
        parser.error("a rank needs a line; modes are at most times, and these at most places")
    with causeway_tsqr.Tree(COMM, options.times) as tree:
        snapshots = simulate(options.side, options.times, options.steps)
        before, begin = tree.messages_between_sites(), time.perf_counter()
        modes, singular, factors = decompose(tree, snapshots, options.modes)
        seconds = COMM.allreduce(time.perf_counter() - begin, MPI.MAX)
        messages = COMM.allreduce(tree.messages_between_sites() - before)
        whole = square_sum(snapshots)
        # What the first modes leave out, from the fields themselves: it must agree with the values.
        left = [square_sum(snapshots - modes[:, :k] @ factors[:k]) / whole for k in range(1, options.modes + 1)]
        if COMM.rank == 0:
            print(f"modes: {options.side**2} places, {options.times} times, {COMM.size} ranks, {tree.sites} "
                  f"sites: {seconds:.3f} s, {messages} messages between sites")
            print("mode  singular value     left out  left out of the fields")
            tails = [1 - float(numpy.sum(singular[:k] ** 2) / numpy.sum(singular**2)) for k in range(1, options.modes + 1)]
            for k, (value, tail, measured) in enumerate(zip(singular, tails, left), start=1):
                print(f"{k:4} {value:15.6e} {tail:12.3e} {measured:23.3e}")


if __name__ == "__main__":
    main()
