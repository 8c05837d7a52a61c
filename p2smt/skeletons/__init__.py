"""Exact search over parts of a space: enumerate, optimise, decide, on one process or on many.

A space is cut into cubes (``cube``), each closed by a verdict; a coordinator hands cubes to an
engine until none is open.  After YewPar's skeletons (Archibald, Maier, Stewart, Trinder: YewPar,
PPoPP 2020, with budget coordination).
"""
