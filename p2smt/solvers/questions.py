"""What can be asked about a problem, as frozen data: the second half of a question to a solver."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from p2smt.errors import InputError


@dataclass(frozen=True, slots=True)
class Optimum:
    """The answer of least cost; of several, the first in the order of the problem's answers.

    OPTIMAL, FEASIBLE, INFEASIBLE or UNKNOWN.
    """


@dataclass(frozen=True, slots=True)
class Every:
    """All answers, each once, in order: COMPLETE (an empty tuple if there is none), TRUNCATED."""


@dataclass(frozen=True, slots=True)
class Best:
    """The ``count`` answers of least cost in order (all, if there are fewer).

    COMPLETE if the order is proved, else TRUNCATED.
    """

    count: int


@dataclass(frozen=True, slots=True)
class CostKeys:
    """The (instruction, payload rows) pairs, sorted, that a program's cost table must cover.

    COMPLETE, or UNKNOWN if the time ran out before they were known.
    """


@dataclass(frozen=True, slots=True)
class Conflict:
    """Rules of a placement that leave no answer together: INFEASIBLE with their indices.

    Excluded matrices and costs play no part.  FEASIBLE without a value: they have an answer; or
    UNKNOWN.
    """


@dataclass(frozen=True, slots=True)
class Witness:
    """One answer, whichever: FEASIBLE; INFEASIBLE: proved that there is none; UNKNOWN."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether a claim holds: COMPLETE with True, or UNKNOWN; never a proof of the contrary."""


@dataclass(frozen=True, slots=True)
class Multipliers:
    """Farkas multipliers that refute every answer: COMPLETE; INFEASIBLE: there is one; UNKNOWN."""


Question = Optimum | Every | Best | CostKeys | Conflict | Witness | Proof | Multipliers


# The solvers by name.


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
