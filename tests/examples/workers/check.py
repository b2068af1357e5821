"""Checks what causeway_workers.py gives: results, lists, sums, and errors that say why."""

import causeway_workers
from mpi4py import MPI

rank = MPI.COMM_WORLD.Get_rank()


def raises(item: int) -> float:
    if item == 7:
        raise ValueError("seven is too many")
    return 0.5


how = {"groups": "2,1", "shape": causeway_workers.HIERARCHICAL}
found = causeway_workers.run(500, lambda item: item / 3, result="d", **how)
assert (found is None) == (rank != 0)
assert not found or found.results == [item / 3 for item in range(500)]

found = causeway_workers.run(300, lambda item: b"x" * (item % 5), result=bytes)
assert not found or found.results == [b"x" * (item % 5) for item in range(300)]

found = causeway_workers.run(100, lambda item: (item, 1), sum="2q")
assert not found or found.sum == (4950, 100), found.sum

found = causeway_workers.run(100, lambda item: (item - 40) ** 2, sum="q", combine=min, start=10**9)
assert not found or found.sum == 0, found.sum

try:
    causeway_workers.run(20, raises, result="d")
    raise SystemExit("no error was raised")
except causeway_workers.WorkersError as error:
    assert error.status == 4 and "item 7 failed each time" in str(error), error

if rank == 0:
    print("check.py: results, lists, sums and errors are as they should be")
