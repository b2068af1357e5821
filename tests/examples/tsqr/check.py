"""Checks what causeway_tsqr.py and modes.py give, against numpy.linalg on the whole matrix."""

import causeway_tsqr
import modes
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
# Rows of each rank; the second has none.
sizes = [0 if rank == 1 else 40 + 3 * rank for rank in range(comm.size)]
begin, end = sum(sizes[:comm.rank]), sum(sizes[:comm.rank + 1])
random = numpy.random.default_rng(5)


def near(found: numpy.ndarray, wanted: numpy.ndarray, dtype: type, what: str) -> None:
    error = numpy.linalg.norm(found - wanted) / max(1, numpy.linalg.norm(wanted))
    assert error < 200 * numpy.finfo(dtype).eps, (what, dtype, error)


def whole(own: numpy.ndarray) -> numpy.ndarray:
    return numpy.concatenate(comm.allgather(own))


def check(tree: causeway_tsqr.Tree, dtype: type) -> None:
    a = random.uniform(-1, 1, (sum(sizes), 7))
    b = random.uniform(-1, 1, (sum(sizes), 2))
    if numpy.dtype(dtype).kind == "c":
        a = a + 1j * random.uniform(-1, 1, a.shape)
    a, b = a.astype(dtype), b.astype(dtype)
    own = a[begin:end]
    kept = own.copy()
    q, r = tree.qr(own)
    assert q.dtype == r.dtype == dtype and numpy.array_equal(own, kept), "a stays as it is"
    assert numpy.array_equal(r, numpy.triu(r)) and numpy.all(numpy.diagonal(r).real >= 0)
    near(whole(q) @ r, a, dtype, "Q R")
    near(whole(q).conj().T @ whole(q), numpy.eye(7), dtype, "Q^H Q")
    assert numpy.array_equal(tree.r(own), r)
    assert (tree.r(own, everywhere=False) is None) == (comm.rank > 0)
    columns = numpy.asfortranarray(own)
    assert numpy.shares_memory(tree.qr(columns, overwrite=True)[0], columns) or own.size == 0
    with tree.factor(own) as factors:
        x = factors.solve(b[begin:end])
        near(x, numpy.linalg.lstsq(a, b, rcond=None)[0], dtype, "least squares")
        near(whole(factors.multiply(r, 7)), a, dtype, "Q times R")
        try:
            factors.project(b[begin:end] if comm.rank else numpy.ones((3, 2)))
            raise SystemExit("no error was raised for too few rows")
        except causeway_tsqr.TsqrError as error:
            assert error.status == 1 and error.culprit == 0, error
        try:
            factors.multiply(r[:, :2] if comm.rank == 0 else r, 7)
            raise SystemExit("no error was raised for a wrong shape")
        except causeway_tsqr.TsqrError as error:
            assert error.status == 1, error


try:
    causeway_tsqr.Tree(comm, 0 if comm.rank == comm.size - 1 else 64)
    raise SystemExit("no error was raised for no columns")
except causeway_tsqr.TsqrError as error:
    assert error.status == 1, error
with causeway_tsqr.Tree(comm) as tree:
    for dtype in (numpy.float32, numpy.float64, numpy.complex64, numpy.complex128):
        check(tree, dtype)
    try:
        tree.qr(numpy.full((9, 2), numpy.nan if comm.rank == comm.size - 1 else 1.0))
        raise SystemExit("no error was raised for a NaN")
    except causeway_tsqr.TsqrError as error:
        assert error.status == 4 and error.culprit == comm.size - 1 and "NaN" in str(error), error
    near(tree.r(numpy.ones((20, 1), dtype=int)), numpy.full((1, 1), (20 * comm.size) ** 0.5), float, "whole numbers")
    snapshots = modes.simulate(12, 6, 3)
    found, singular, factors = modes.decompose(tree, snapshots, 3)
    u, values, _ = numpy.linalg.svd(whole(snapshots), full_matrices=False)
    near(singular, values, float, "singular values")
    near(numpy.abs(u[:, :3].T @ whole(found)), numpy.eye(3), numpy.float32, "modes")
    best = u[:, :3] @ (u[:, :3].T @ whole(snapshots))
    near(whole(found @ factors), best, float, "temperatures of three modes")

if comm.rank == 0:
    print(f"check.py: {comm.size} ranks: four types, least squares, modes and errors are as they should be")
