"""Least sufficient sets of programs: certificates, and their check by fractions alone.

:mod:`certificate` is what is claimed, :mod:`farkas` and :mod:`hitting` decide it without a solver,
:mod:`check` recomputes what it rests on, :mod:`file` reads and writes it.
"""
