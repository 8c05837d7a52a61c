"""What a library runs: its own rule, applied to groups of one shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from p2smt.cluster.library.model import Ladder, Library, LibraryAlgorithm, LibraryRun
from p2smt.cluster.topology import Algorithm
from p2smt.cost.library.estimate import EstimatedTime, GroupShape, estimate


@dataclass(frozen=True, slots=True)
class LibraryWay:
    """An algorithm (None: messages from peer to peer) with a protocol."""

    algorithm: LibraryAlgorithm | None
    protocol: str


Fits = Callable[[LibraryAlgorithm | None], bool]
"""Whether an algorithm can run on the groups at hand."""


def _fits(_: LibraryAlgorithm | None) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class LibraryChoice:
    """A library's choice for groups of one shape, by payload alone.

    ``ways`` are all that can run.  ``rungs`` are (up to so many bytes, index of a way), ascending;
    beyond them the least of ``estimates`` is taken, the first of equal ones; where nothing is
    estimated, the last rung's way, or the first.
    """

    ways: tuple[LibraryWay, ...]
    rungs: tuple[tuple[float, int], ...] = ()
    estimates: tuple[tuple[int, EstimatedTime], ...] = ()

    def pick(self, payload: float) -> int:
        """The index in ``ways`` of what the library runs for so many bytes per device."""
        for up_to, index in self.rungs:
            if payload <= up_to:
                return index
        if not self.estimates:
            return self.rungs[-1][1] if self.rungs else 0
        return min(self.estimates, key=lambda one: one[1].seconds(payload))[0]


def chooser(
    library: Library,
    operation: str,
    shape: GroupShape,
    allowed: tuple[Algorithm, ...] | None = None,
    fits: Fits = _fits,
) -> LibraryChoice:
    """How a library chooses for groups of this shape; at least one way.

    ``allowed``: only these algorithms, where they can run; a ring where none can.  ``fits`` leaves
    out those that cannot.  A formula estimates none that was added: a ladder names it, or it is the
    first of ``runs`` where there is no formula.
    """
    ways = ways_of(library, operation, shape, allowed, fits)
    ladder = _ladder(library, operation, shape)
    rungs = () if ladder is None else _rungs(ladder, ways, shape)
    formula = library.formula
    if formula is None or (rungs and math.isinf(rungs[-1][0])):
        return LibraryChoice(ways, rungs)
    found = [
        (index, estimate(formula, way.algorithm, way.protocol, operation, shape))
        for index, way in enumerate(ways)
        if isinstance(way.algorithm, Algorithm)
    ]
    return LibraryChoice(ways, rungs, tuple((i, one) for i, one in found if one is not None))


def ways_of(
    library: Library,
    operation: str,
    shape: GroupShape,
    allowed: tuple[Algorithm, ...] | None = None,
    fits: Fits = _fits,
) -> tuple[LibraryWay, ...]:
    """Every algorithm and protocol with which a library can run an operation on such groups.

    ``allowed`` restricts the algorithms; where it leaves none, a ring runs, or else the first.
    ``fits`` leaves out those that cannot run.
    """
    runs = [r for r in library.runs_of(operation) if _applies(r, shape) and fits(r.algorithm)]
    wanted = [r for r in runs if r.algorithm is None or allowed is None or r.algorithm in allowed]
    rings = [run for run in runs if run.algorithm is Algorithm.RING]
    chosen = wanted or rings or runs[:1] or [LibraryRun(Algorithm.RING, ("simple",))]
    return tuple(LibraryWay(run.algorithm, name) for run in chosen for name in run.protocols)


def _applies(run: LibraryRun, shape: GroupShape) -> bool:
    return (
        run.nodes.holds(shape.nodes)
        and shape.members >= run.least_members
        and (not run.one_rank_per_node or shape.local == 1)
        and run.fits_node(shape.local)
        and (not run.in_switch or (shape.in_switch and shape.local > 1))
    )


def _ladder(library: Library, operation: str, shape: GroupShape) -> Ladder | None:
    for ladder in library.ladders:
        if (
            ladder.operation == operation
            and ladder.nodes.holds(shape.nodes)
            and ladder.members in (0, shape.members)
            and (not ladder.fabrics or shape.inside in ladder.fabrics)
        ):
            return ladder
    return None


def _rungs(
    ladder: Ladder, ways: tuple[LibraryWay, ...], shape: GroupShape
) -> tuple[tuple[float, int], ...]:
    """The ladder's rungs among the ways; one that is not allowed is left out."""
    size = shape.members if ladder.per_peer else 1
    return tuple(
        (rung.up_to_bytes * size, ways.index(LibraryWay(rung.algorithm, rung.protocol)))
        for rung in ladder.rungs
        if LibraryWay(rung.algorithm, rung.protocol) in ways
    )
