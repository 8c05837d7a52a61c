"""What a search for a redistribution returns."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.arrays.steps import ArrayStep
from p2smt.result import SolveStats, Status


@dataclass(frozen=True, slots=True)
class PathResult:
    """The fastest steps found, in the frame of one of the ends that were given (``ends``: which).

    OPTIMAL: no plan under the cap is faster (of any length, or of at most as many steps as were
    asked for); INFEASIBLE: none keeps to the cap.  ``bound_s`` holds whatever the status.
    """

    status: Status
    ends: int
    steps: tuple[ArrayStep, ...]
    seconds: float | None
    bound_s: float
    stats: SolveStats
