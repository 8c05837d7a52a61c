"""Least sufficient sets of programs: certificates, and their check by fractions alone.

:mod:`least_set` is what is claimed, :mod:`farkas` and :mod:`hitting` decide it without a solver,
:mod:`least_set_check` recomputes what it rests on, :mod:`least_set_file` reads and writes it.
"""
