"""The solvers by name."""

from __future__ import annotations

from enum import StrEnum

from p2smt.errors import InputError


class Solver(StrEnum):
    """Which solver answers; encodings of one problem give the same proved answers for each."""

    CPSAT = "cpsat"
    Z3 = "z3"


def solver_of(name: str) -> Solver:
    """The solver with this name.

    Raises:
        InputError: there is none.
    """
    if name not in list(Solver):
        raise InputError(f"solver {name[:20]!r}", f"must be one of {', '.join(Solver)}")
    return Solver(name)
