"""mpi4py_main.py MAIN ARGUMENTS...: mpi4py's own test program. It says, on standard error, which
tests asked for a function that this MPI does not have ("... is not there"): at a rank of an MPI
that has it they communicate."""
import os
import runpy
import sys
import unittest

sys.argv = sys.argv[1:]
tests = os.path.dirname(sys.argv[0])
sys.path.insert(0, tests)

running = None
run = unittest.TestCase.run


def run_and_remember(self, result=None):
    global running
    running = self.id()
    return run(self, result)


unittest.TestCase.run = run_and_remember


def note(error):
    if running and isinstance(error, NotImplementedError):
        os.write(2, f"\n({running}) ... is not there\n".encode())


def trace(frame, event, argument):
    if event == "exception":
        note(argument[1])
    return trace


# Only in the tests' own files: what mpi4py raises and catches by itself is its own affair.
sys.settrace(lambda frame, event, argument: trace if frame.f_code.co_filename.startswith(tests) else None)
runpy.run_path(sys.argv[0], run_name="__main__")
