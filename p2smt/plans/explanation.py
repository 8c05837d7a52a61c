"""What an answer rests on: the nearest numbers at which another one wins, and what needs none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Literal

from p2smt.parallelism.placement import Matrix
from p2smt.programs.program import Program

NumberKind = Literal["bandwidth", "latency", "call", "payload"]

SEARCHED = 16
"""Numbers are multiplied by factors from 1 to this, and divided by as much."""


@dataclass(frozen=True, slots=True)
class ChangedNumber:
    """A number of the problem that grows (or shrinks) by a factor, all others staying.

    ``of``: the level whose bandwidth or latency it is, the request whose payload; None: the cost
    of every call.  ``index`` is that of the level or the request.
    """

    what: NumberKind
    of: str | None
    index: int
    grows: bool


class TippingPointOutcome(Enum):
    """How the search for a flip ended."""

    FLIP = "flip"  # another answer wins beyond the factor: solved again on both sides
    NONE = "none"  # none up to the factor searched
    OPEN = "open"  # not settled: the time was over, or the solver did not confirm it


@dataclass(frozen=True, slots=True)
class NearestTippingPoint:
    """By how much a number has to change before another answer wins.

    ``request``: whose program changes on the answer's placement; None: the placement changes.
    ``factor`` (at least 1): the number is multiplied by it if it grows, else divided; ``exact`` is
    the same as a fraction, where costs are linear.  ``proved``: of a flip, none is nearer; of NONE,
    there is none.  Otherwise the factors tried are ``tried`` many, and what lies between was not
    seen.  ``matrix`` or ``program`` wins beyond it.  ``why``: what kept it from being settled.
    """

    number: ChangedNumber
    request: str | None
    outcome: TippingPointOutcome
    factor: float | None = None
    exact: Fraction | None = None
    proved: bool = False
    tried: int = 0
    matrix: Matrix | None = None
    program: Program | None = None
    why: str = ""


class ProgramVerdict(Enum):
    """What holds of a request's program for every latency, bandwidth, payload and cost of calls."""

    BEST = "best"  # no program is ever cheaper on this placement
    WARM_STARTS = "sufficient"  # it is one of a few of which one is always a best one
    OTHER = "other"  # it is none of those: it is best by these numbers, or by a library's choice
    OPEN = "open"  # not settled


@dataclass(frozen=True, slots=True)
class ProgramClaim:
    """What was proved of a request's program, over rings with one protocol.

    ``among``: the least sufficient set: fewest programs of which one is always a best one on this
    placement.  ``why``: what kept it from being settled.
    """

    request: str
    program: Program
    verdict: ProgramVerdict
    among: tuple[Program, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class PlacementClaim:
    """Which placements can win whatever the numbers are, over rings with one protocol.

    Of ``others`` (all but the answer) ``never_better`` are never better than it, for any
    bandwidths, cost of calls and payloads, and any latencies that are no shorter further out;
    ``rivals`` were not excluded so, of which ``unsettled`` many not for want of time or of a
    linear cost.  ``axes``: whose row in the matrix is the same in the answer and all rivals.
    ``whole``: all matrices were looked at.
    """

    others: int
    never_better: int
    rivals: tuple[Matrix, ...]
    unsettled: int
    axes: tuple[str, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was found; ``placements`` is None and ``why`` says so where there was nothing to ask.

    ``linear``: costs are linear in the numbers, so the flips are exact.
    """

    flips: tuple[NearestTippingPoint, ...] = ()
    programs: tuple[ProgramClaim, ...] = ()
    placements: PlacementClaim | None = None
    linear: bool = False
    why: str = ""

    def of_placement(self, *, hardware: bool = False) -> tuple[NearestTippingPoint, ...]:
        """The flips of the placement, whatever came of them; ``hardware``: of no payload."""
        return tuple(
            flip
            for flip in self.flips
            if flip.request is None and not (hardware and flip.number.what == "payload")
        )

    def nearest(self, *, hardware: bool = False) -> NearestTippingPoint | None:
        """The flip of a placement found that needs the least change; see :meth:`unsettled`."""
        found = [flip for flip in self.of_placement(hardware=hardware) if flip.factor is not None]
        return min(found, key=lambda one: one.factor or 0.0, default=None)

    def unsettled(self, *, hardware: bool = False) -> int:
        """How many flips of the placement are open: each may be nearer than the nearest found."""
        own = self.of_placement(hardware=hardware)
        return sum(flip.outcome is TippingPointOutcome.OPEN for flip in own)

    def nearest_proved(self, *, hardware: bool = False) -> bool:
        """Whether no flip of the placement is nearer, or without a nearest one there is none."""
        return not self.why and exact_tipping_points(self.of_placement(hardware=hardware))


def exact_tipping_points(flips: Iterable[NearestTippingPoint]) -> bool:
    """Whether of all of these it is proved that none is nearer, or that there is none."""
    return all(flip.proved and flip.outcome is not TippingPointOutcome.OPEN for flip in flips)
