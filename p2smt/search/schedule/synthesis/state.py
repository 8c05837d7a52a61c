"""How far a synthesis has come, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from p2smt.search.schedule.synthesis.question import ScheduleSize


@dataclass(frozen=True, slots=True)
class SynthesisState:
    """What is tried now; the bound on rounds a chunk in so many steps, and the best one found.

    ``doing``: with which group and class.
    """

    size: ScheduleSize
    bound: Fraction | None = None
    best: Fraction | None = None
    doing: str = ""


Tell = Callable[[SynthesisState], None]


def tell_nobody(_state: SynthesisState) -> None:
    """Where nobody looks on."""
