"""The tsqr library for Python programs with mpi4py and NumPy.

    from mpi4py import MPI
    import causeway_tsqr

    with causeway_tsqr.Tree(MPI.COMM_WORLD) as tree:
        q, r = tree.qr(rows_of_this_rank)

All ranks call the same functions in the same order. Types are float32, float64, complex64 and
complex128. Columns are stored one after another (order="F"); other arrays are copied. The library
is libcauseway_tsqr.so in build/ beside this file, or what CAUSEWAY_TSQR_LIBRARY names; it must be
built for the MPI that mpi4py uses. causeway_tsqr.h explains the rest."""

import ctypes
import os
import pathlib

import numpy
from mpi4py import MPI

R_EVERYWHERE, FORM_Q, KEEP_Q, LET_PASS = 1, 2, 4, 8
_TYPES = [numpy.dtype(name) for name in ("float32", "float64", "complex64", "complex128")]


class TsqrError(RuntimeError):
    """A call failed; `status` is CAUSEWAY_TSQR_... of causeway_tsqr.h, `culprit` a rank or -1."""

    def __init__(self, status: int, culprit: int = -1) -> None:
        words = _library.causeway_tsqr_sentence(status).decode()
        super().__init__(words if culprit < 0 else f"rank {culprit}: {words}")
        self.status, self.culprit = status, culprit


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("messages_near", "bytes_near", "messages_far", "bytes_far")]


def _load() -> ctypes.CDLL:
    here = pathlib.Path(__file__).resolve().parent / "build/libcauseway_tsqr.so"
    library = ctypes.CDLL(os.environ.get("CAUSEWAY_TSQR_LIBRARY", str(here)))
    pointer, integer, long = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
    library.causeway_tsqr_sentence.restype = ctypes.c_char_p
    library.causeway_tsqr_open_fortran.argtypes = [integer, integer, pointer]
    library.causeway_tsqr_factor.argtypes = [pointer, integer, long, integer, pointer, long, pointer, long,
                                             ctypes.c_uint, pointer]
    library.causeway_tsqr_multiply.argtypes = [pointer, integer, pointer, long, pointer, long]
    library.causeway_tsqr_project.argtypes = [pointer, integer, pointer, long, pointer, long, ctypes.c_uint]
    library.causeway_tsqr_count.argtypes = [pointer, pointer]
    for name in ("close", "free", "sites", "culprit"):
        getattr(library, f"causeway_tsqr_{name}").argtypes = [pointer]
    return library


_library = _load()


def _matrix(values: object, dtype: numpy.dtype | None = None) -> numpy.ndarray:
    """Two dimensions, columns one after another; a vector is one column. It may be `values`."""
    given = numpy.asarray(values)
    given = given.reshape(-1, 1) if given.ndim == 1 else given
    return numpy.asarray(given, dtype=dtype, order="F")


def _address(a: numpy.ndarray | None) -> int | None:
    return None if a is None else a.ctypes.data


def _apart(a: numpy.ndarray | None) -> int:
    """How far columns are from one another."""
    return 1 if a is None else max(1, a.shape[0])


class Tree:
    """The tree over all ranks of a communicator, for any number of factorisations.

    `columns` is about how many the matrices have."""

    def __init__(self, comm: MPI.Comm = MPI.COMM_WORLD, columns: int = 64) -> None:
        self._pointer, self.comm = ctypes.c_void_p(), comm
        status = _library.causeway_tsqr_open_fortran(comm.py2f(), columns, ctypes.byref(self._pointer))
        if status:
            raise TsqrError(status)
        self.sites = _library.causeway_tsqr_sites(self._pointer)

    def close(self) -> None:
        """Collective; every Factors is freed before."""
        _library.causeway_tsqr_close(self._pointer)
        self._pointer = ctypes.c_void_p()

    def __enter__(self) -> "Tree":
        return self

    def __exit__(self, kind, _error, _trace) -> None:
        # Where one rank has failed, others may not come to a collective call.
        if kind is None:
            self.close()

    def messages_between_sites(self) -> int:
        """What this rank has sent to other sites."""
        counts = _Counts()
        _library.causeway_tsqr_count(self._pointer, ctypes.byref(counts))
        return counts.messages_far

    def qr(self, a: object, overwrite: bool = False) -> tuple[numpy.ndarray, numpy.ndarray]:
        """This rank's rows of Q, and R at all ranks. With `overwrite` Q may take the place of a."""
        q, r, _ = self._factor(a, R_EVERYWHERE | FORM_Q, overwrite)
        return q, r

    def r(self, a: object, everywhere: bool = True) -> numpy.ndarray | None:
        """R alone, at all ranks, or at rank 0 where others get None."""
        return self._factor(a, R_EVERYWHERE if everywhere else 0, False)[1]

    def factor(self, a: object, overwrite: bool = False) -> "Factors":
        """Keeps Q as reflections: cheaper than to form it where it is applied to little."""
        reflections, r, kept = self._factor(a, R_EVERYWHERE | KEEP_Q, overwrite)
        return Factors(self, reflections, r, kept)

    def _factor(self, a: object, flags: int, overwrite: bool) -> tuple:
        work = _matrix(a)
        if work.dtype not in _TYPES:
            work = _matrix(work, numpy.dtype(complex if work.dtype.kind == "c" else float))
        if not overwrite and numpy.shares_memory(work, a if isinstance(a, numpy.ndarray) else work[:0]):
            work = work.copy(order="F")
        n, kept = work.shape[1], ctypes.c_void_p()
        r = None
        if self.comm.rank == 0 or flags & R_EVERYWHERE:
            r = numpy.zeros((n, n), work.dtype, order="F")
        status = _library.causeway_tsqr_factor(
            self._pointer, _TYPES.index(work.dtype), work.shape[0], n, _address(work), _apart(work),
            _address(r), n, flags, ctypes.byref(kept))
        self._check(status)
        return work, r, kept

    def _check(self, status: int) -> None:
        if status:
            raise TsqrError(status, _library.causeway_tsqr_culprit(self._pointer))


class Factors:
    """A = Q R with Q kept as reflections; `r` is at all ranks."""

    def __init__(self, tree: Tree, reflections: numpy.ndarray, r: numpy.ndarray, kept: ctypes.c_void_p) -> None:
        self.r, self._tree, self._kept = r, tree, kept
        self._reflections = reflections  # the library reads them until free

    def free(self) -> None:
        """Gives the memory back; not collective."""
        _library.causeway_tsqr_free(self._kept)
        self._kept, self._reflections = ctypes.c_void_p(), None

    def __enter__(self) -> "Factors":
        return self

    def __exit__(self, *_error) -> None:
        self.free()

    def multiply(self, x: object, k: int) -> numpy.ndarray:
        """This rank's rows of Q x, where x has k columns; only rank 0's x is looked at."""
        given = _matrix(x, self.r.dtype) if self._tree.comm.rank == 0 else None
        if given is not None and given.shape != (len(self.r), k):
            given = None  # the library tells all ranks
        b = numpy.zeros((self._reflections.shape[0], k), self.r.dtype, order="F")
        self._tree._check(_library.causeway_tsqr_multiply(
            self._kept, k, _address(given), _apart(given), _address(b), _apart(b)))
        return b

    def project(self, b: object) -> numpy.ndarray:
        """Q^H b at all ranks, where each rank gives its rows of b."""
        given = _matrix(b, self.r.dtype)
        # As above: the library tells all ranks that no columns are 0 apart.
        apart = _apart(given) if given.shape[0] == self._reflections.shape[0] else 0
        x = numpy.zeros((len(self.r), given.shape[1]), self.r.dtype, order="F")
        self._tree._check(_library.causeway_tsqr_project(
            self._kept, given.shape[1], _address(given), apart, _address(x), _apart(x), R_EVERYWHERE))
        return x

    def solve(self, b: object) -> numpy.ndarray:
        """The least-squares solution of A x = b at all ranks; A has full rank."""
        return numpy.linalg.solve(self.r, self.project(b))
