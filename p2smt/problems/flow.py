"""What must at least go over a fabric: flows through its edges step by step, and their prices.

Chunks of a collective come in *groups* of equal ways: a group is the pairs (from, to) of ranks
between which each of its chunks must find a way.  Averaged over its chunks, what a schedule sends
is a flow for every pair, and no edge carries less than any pair of a group takes from it.  The
least rounds that all flows need are a linear program, whose dual sets prices: its optimum is a
bound for every number of chunks, and prices prove a bound by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from p2smt.errors import InputError
from p2smt.problems.edge_ways import EdgeRow, edge_distances

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FlowCrossing:
    """Over ``edges`` go at least ``messages`` a chunk of each group's, all steps together."""

    edges: tuple[int, ...]
    messages: int


@dataclass(frozen=True, slots=True)
class FlowSymmetry:
    """Where a symmetry takes every rank and every edge, by their numbers."""

    ranks: tuple[int, ...]
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FlowProblem:
    """The greatest rounds a chunk that prices prove, in ``steps`` steps (None: in any number).

    ``edges`` are (source, target, loaded capacities), ``capacities`` their bandwidths.
    ``crossings``: of all groups together, what must go over some edges.  Symmetries map groups,
    crossings and capacities onto such; their verification is not done here.
    """

    ranks: int
    edges: tuple[EdgeRow, ...]
    capacities: tuple[Fraction, ...]
    groups: tuple[Pairs, ...]
    crossings: tuple[FlowCrossing, ...] = ()
    steps: int | None = None
    symmetries: tuple[FlowSymmetry, ...] = ()

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise InputError(f"{self.steps} steps", "must be at least 1")
        if not self.groups and not self.crossings:
            raise InputError("no groups and no crossings", "nothing has to be sent")

    def distances(self, start: int, *, back: bool = False) -> tuple[int | None, ...]:
        """Steps from ``start`` to each rank (``back``: to it); None: no way."""
        return edge_distances(self.ranks, self.edges, [start], back=back)


@dataclass(frozen=True, slots=True)
class FlowPrices:
    """Prices as a solver's floats, of one of what symmetries take to each other; no zeros.

    ``capacities``: by (capacity, step).  ``shares``: what of an edge's price in a step a way of a
    group with several takes, by (way, edge, step).  ``crossings``: by number.  Capacities, and
    ways with edges, are those that :class:`~p2smt.problems.flow_orbits.FlowOrbits` names; the step
    is 0 where their number is open.
    """

    value: float
    capacities: tuple[tuple[tuple[int, int], float], ...]
    shares: tuple[tuple[tuple[int, int, int], float], ...]
    crossings: tuple[tuple[int, float], ...]
