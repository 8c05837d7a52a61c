"""What a search over cubes returns, and what it tells while it runs: data, worded elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.result import Status
from p2smt.skeletons.cube import Cube, CubeVerdict, Member

VerdictCounts = tuple[tuple[CubeVerdict, int], ...]
"""How many cubes were closed with each verdict, in the order of :class:`CubeVerdict`."""


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """Where a search ended.

    Settled, its status, ``best``, ``bound``, ``count`` and ``digest`` depend on the space and
    ``top`` alone: not on the engine, the number of workers, budgets, seeds or chance.  Of a
    decision that holds for the status; the member is the first one that was met.

    status: of an optimisation OPTIMAL (also with fewer than ``top`` members, if there are no
    more), FEASIBLE, INFEASIBLE or UNKNOWN; of an enumeration COMPLETE or TRUNCATED; of a decision
    OPTIMAL (a member), INFEASIBLE or UNKNOWN.
    best: at most ``top`` members, in order; of a space with a cutoff of its own all up to that.
    bound: of an optimisation, ticks that no member is below; None if there is nothing to bound.
    closed: how the cubes were closed, which does depend on chance.
    count, digest: of an enumeration, the members listed (see :mod:`p2smt.skeletons.digest`).
    open_cubes: what was not closed, in order.
    unknown_cubes: those closed without proof, in order.
    interrupted: whether a KeyboardInterrupt ended it.
    reason: why nothing is proved, in words; "" where something is.
    splits, deaths: cubes that were replaced by their children, workers that died at a cube.
    given_up: of the unknown cubes those at which too many workers died, each with how many.
    """

    status: Status
    best: tuple[Member, ...] = ()
    bound: int | None = None
    closed: VerdictCounts = ()
    count: int | None = None
    digest: str | None = None
    open_cubes: tuple[Cube, ...] = ()
    unknown_cubes: tuple[Cube, ...] = ()
    interrupted: bool = False
    reason: str = ""
    splits: int = 0
    deaths: int = 0
    elapsed_s: float = 0.0
    given_up: tuple[tuple[Cube, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search has come.

    ``gap`` is how far the incumbent's value lies above the bound, as a part of that value.
    ``to_go_s`` is what the open cubes will take if they are like those that were worked on, and
    none is pruned or split: a guess, None before there is anything to guess from.
    """

    open_cubes: int
    in_flight: int
    closed: VerdictCounts
    incumbent: Member | None
    bound: int | None
    gap: float | None
    count: int | None
    workers: int
    elapsed_s: float
    to_go_s: float | None
