"""What a collective asks of a fabric, as a question for prices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Protocol

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.errors import InputError
from p2smt.files.suggest import did_you_mean
from p2smt.problems.flow import FlowCrossing, FlowProblem, FlowSymmetry, Pairs
from p2smt.schedules.certificate.certificate import BoundedCollective


class FabricMap(Protocol):
    """A symmetry of a fabric: where it takes ranks and edges, by their numbers."""

    @property
    def ranks(self) -> tuple[int, ...]:
        """Images of the ranks."""
        ...

    @property
    def edges(self) -> tuple[int, ...]:
        """Images of the edges."""
        ...


def bounded(collective: str) -> BoundedCollective:
    """The collective of a name such as ``all-gather``, or ``allgather`` as schedules have it.

    Raises:
        InputError: there are no bounds for it.
    """
    names = {one.value.replace("-", ""): one for one in BoundedCollective}
    found = names.get(collective.lower().replace("-", "").replace("_", ""))
    if found is None:
        rule = f"is none of {', '.join(BoundedCollective)}"
        remedy = did_you_mean(collective, tuple(BoundedCollective)) or ""
        raise InputError(f"collective {collective[:40]!r}", rule, remedy)
    return found


def groups_of(collective: BoundedCollective, ranks: int, root: int) -> tuple[Pairs, ...]:
    """For every kind of chunk the pairs of ranks between which its data must find a way."""
    every, own = range(ranks), BoundedCollective
    pairs = tuple(permutations(every, 2))
    if collective is own.ALL_REDUCE:
        return (pairs,)
    if collective is own.ALL_GATHER:
        return tuple(tuple((origin, goal) for goal in every if goal != origin) for origin in every)
    if collective is own.REDUCE_SCATTER:
        return tuple(tuple((origin, goal) for origin in every if goal != origin) for goal in every)
    if collective is own.ALL_TO_ALL:
        return tuple((pair,) for pair in pairs)
    outward = collective in (own.BROADCAST, own.SCATTER)
    rooted = tuple(pair for pair in pairs if pair[0 if outward else 1] == root)
    together = collective in (own.BROADCAST, own.REDUCE)
    return (rooted,) if together else tuple((pair,) for pair in rooted)


def flow_problem(
    fabric: Fabric,
    groups: tuple[Pairs, ...],
    crossings: Sequence[FlowCrossing],
    steps: int | None,
    symmetries: Sequence[FabricMap] = (),
) -> FlowProblem:
    """The question for the prices that prove most."""
    return FlowProblem(
        fabric.ranks,
        fabric.edge_rows,
        fabric.bandwidths,
        groups,
        tuple(crossings),
        steps,
        tuple(FlowSymmetry(one.ranks, one.edges) for one in symmetries),
    )
