"""The workers library for Python programs with mpi4py: a function of items, computed by all ranks.

    from mpi4py import MPI
    import causeway_workers

    found = causeway_workers.run(1000, lambda item: item**0.5, result="d")
    if found:
        print(sum(found.results))

All ranks call run(); what was found is at rank 0. causeway_workers.h explains the rest. The
library is libcauseway_workers.so in build/ beside this file, or what CAUSEWAY_WORKERS_LIBRARY
names. It must be built for the MPI that mpi4py uses."""

import ctypes
import os
import pathlib
import struct
import traceback

from mpi4py import MPI

FLAT, HIERARCHICAL = 1, 2
BOSS_COMPUTES, BOSS_SERVES = 1, 2


class WorkersError(RuntimeError):
    """The run did not come to its end; `status` is CAUSEWAY_WORKERS_... of causeway_workers.h."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Found:
    """What rank 0 gets: a list of results, the sum, and what happened."""

    def __init__(self, results: list, total: object, job: "_Job") -> None:
        self.results, self.sum = results, total
        self.retries, self.copies = job.retries, job.copies
        self.is_hierarchical = bool(job.is_hierarchical)


class _Item(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int64)] + [(name, ctypes.c_void_p) for name in ("result", "sum", "list")]


class _Lists(ctypes.Structure):
    _fields_ = [("offsets", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p)]


_COMPUTE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Item), ctypes.c_void_p)
_COMBINE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class _Job(ctypes.Structure):
    _fields_ = [
        ("items", ctypes.c_int64),
        ("compute", _COMPUTE),
        ("context", ctypes.c_void_p),
        ("result_bytes", ctypes.c_int64),
        ("has_lists", ctypes.c_int),
        ("sum_bytes", ctypes.c_int64),
        ("combine", _COMBINE),
        ("sum_start", ctypes.c_void_p),
        ("results", ctypes.c_void_p),
        ("sum", ctypes.c_void_p),
        ("lists", ctypes.POINTER(_Lists)),
        ("collect", ctypes.c_void_p),
        ("block_items", ctypes.c_int64),
        ("groups", ctypes.c_char_p),
        ("color", ctypes.c_int),
        ("shape", ctypes.c_int),
        ("boss", ctypes.c_int),
        ("attempts", ctypes.c_int),
        ("deadline_seconds", ctypes.c_double),
        ("patience_seconds", ctypes.c_double),
        ("piece_bytes", ctypes.c_int64),
        ("progress", ctypes.c_int),
        ("messages_received", ctypes.c_int64),
        ("messages_sent", ctypes.c_int64),
        ("messages_far", ctypes.c_int64),
        ("largest_message", ctypes.c_int64),
        ("retries", ctypes.c_int64),
        ("copies", ctypes.c_int64),
        ("children", ctypes.c_int),
        ("is_hierarchical", ctypes.c_int),
    ]


def _load() -> ctypes.CDLL:
    here = pathlib.Path(__file__).resolve().parent / "build/libcauseway_workers.so"
    library = ctypes.CDLL(os.environ.get("CAUSEWAY_WORKERS_LIBRARY", str(here)))
    library.causeway_workers_job_bytes.restype = ctypes.c_int64
    library.causeway_workers_error.restype = ctypes.c_char_p
    library.causeway_workers_append.argtypes = [ctypes.POINTER(_Item), ctypes.c_char_p, ctypes.c_int64]
    if library.causeway_workers_job_bytes() != ctypes.sizeof(_Job):
        raise ImportError("libcauseway_workers.so is of another version than causeway_workers.py")
    return library


_library = _load()


def _values(value: object) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _plain(values: tuple) -> object:
    """A number alone is no tuple of one."""
    return values[0] if len(values) == 1 else values


def _add(earlier: tuple, later: tuple) -> tuple:
    return tuple(a + b for a, b in zip(earlier, later))


class _Work:
    """The C library's view of a Python function."""

    def __init__(self, function, result, total, combine, start) -> None:
        self.function, self.combine = function, combine or _add
        self.is_list = result is bytes
        self.result = struct.Struct(result) if result and not self.is_list else None
        self.sum = struct.Struct(total) if total else None
        self.start = None
        if self.sum and start is not None:
            self.start = ctypes.create_string_buffer(self.sum.pack(*_values(start)), self.sum.size)
        self.words = ""

    def compute(self, item, _context) -> int:
        try:
            given = self.function(item.contents.index)
            result, addend = given if (self.result or self.is_list) and self.sum else (given, given)
            if self.is_list:
                _library.causeway_workers_append(item, bytes(result), len(result))
            elif self.result:
                ctypes.memmove(item.contents.result, self.result.pack(*_values(result)), self.result.size)
            if self.sum:
                self.put(item.contents.sum, self.combine(self.get(item.contents.sum), _values(addend)))
            return 0
        # Whatever the user's function raises fails this item: it is tried elsewhere.
        except Exception:  # noqa: BLE001
            self.words = traceback.format_exc()
            return 1

    def add(self, into, later, _context) -> None:
        self.put(into, self.combine(self.get(into), self.get(later)))

    def get(self, address: int) -> tuple:
        return self.sum.unpack(ctypes.string_at(address, self.sum.size))

    def put(self, address: int, values: tuple) -> None:
        ctypes.memmove(address, self.sum.pack(*values), self.sum.size)


def run(items: int, function, result=None, sum=None, combine=None, start=None, comm=None, **how) -> Found | None:
    """Computes function(0) to function(items - 1). Rank 0 gets what was found, others None.

    `result` is a format of the struct module ("d", "2i"), or `bytes` for results of any size.
    `sum` is such a format, too: combine(earlier, later) then adds up tuples of that many numbers;
    without it they are added one by one. `start`, zeros by itself, is what changes nothing when
    it is added. The function returns the result, or what is to be summed, or (result, summand).
    `how` are fields of struct causeway_workers: groups, shape, boss, and so on."""
    comm = comm or MPI.COMM_WORLD
    is_root = comm.Get_rank() == 0
    work, job = _Work(function, result, sum, combine, start), _Job()
    _library.causeway_workers_init(ctypes.byref(job))
    job.items = items
    job.compute, job.combine = _COMPUTE(work.compute), _COMBINE(work.add)
    job.result_bytes = work.result.size if work.result else 0
    job.has_lists = work.is_list
    job.sum_bytes = work.sum.size if work.sum else 0
    job.sum_start = ctypes.cast(work.start, ctypes.c_void_p) if work.start else None
    results = ctypes.create_string_buffer(max(items, 1) * job.result_bytes if is_root else 0)
    total, lists = ctypes.create_string_buffer(job.sum_bytes), _Lists()
    if is_root:
        job.results = ctypes.cast(results, ctypes.c_void_p)
        job.sum = ctypes.cast(total, ctypes.c_void_p)
        job.lists = ctypes.pointer(lists)
    for name, value in how.items():
        setattr(job, name, value.encode() if isinstance(value, str) else value)
    status = _library.causeway_workers_run_fortran(comm.py2f(), ctypes.byref(job))
    if status:
        raise WorkersError(status, _library.causeway_workers_error().decode() + (f"\n{work.words}" if work.words else ""))
    if not is_root:
        return None
    if work.is_list:
        found = [ctypes.string_at(lists.data + lists.offsets[i], lists.offsets[i + 1] - lists.offsets[i])
                 for i in range(items)]
        _library.causeway_workers_lists_free(ctypes.byref(lists))
    else:
        found = [_plain(values) for values in work.result.iter_unpack(results.raw)] if work.result else []
    return Found(found, _plain(work.get(ctypes.addressof(total))) if work.sum else None, job)
