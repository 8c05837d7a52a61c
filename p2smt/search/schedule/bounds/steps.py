"""The steps that every schedule has: data goes over one edge a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.errors import InputError
from p2smt.schedules.certificate.certificate import BoundedCollective
from p2smt.search.schedule.bounds.question import bounded


def steps_bound(fabric: Fabric, collective: str, root: int = 0) -> int:
    """The least number of steps that the distances allow; 0 where nothing has to go.

    Raises:
        InputError: the collective has no bounds, or some rank no way to one that wants its data.
    """
    pair = farthest_pair(fabric, collective, root)
    return 0 if pair is None else _distances(_after(fabric), pair[0])[pair[1]]


def farthest_pair(fabric: Fabric, collective: str, root: int = 0) -> tuple[int, int] | None:
    """Two ranks that are farthest apart of those between which data must go: the first such.

    Raises:
        InputError: as :func:`steps_bound`.
    """
    if not 0 <= root < fabric.ranks:
        raise InputError(f"root {root}", f"must be one of the ranks 0 to {fabric.ranks - 1}")
    best: tuple[int, int, int] | None = None
    after = _after(fabric)
    for source, targets in _wanted(bounded(collective), fabric.ranks, root):
        found = _distances(after, source)
        if lost := [target for target in targets if target not in found]:
            rule = f"has no way to rank {lost[0]}, which needs its data"
            raise InputError(f"rank {source} of fabric {fabric.name[:60]}", rule)
        far = max(targets, key=found.__getitem__)
        if far != source and (best is None or found[far] > best[0]):
            best = (found[far], source, far)
    return None if best is None else best[1:]


def _wanted(
    collective: BoundedCollective, ranks: int, root: int
) -> Iterator[tuple[int, Sequence[int]]]:
    """Ranks with those that need their data; a rank may be among its own."""
    every = range(ranks)
    own = BoundedCollective
    inward = collective in (own.GATHER, own.REDUCE)
    sources = [root] if collective.rooted and not inward else every
    return ((source, [root] if inward else every) for source in sources)


def _after(fabric: Fabric) -> list[list[int]]:
    """Of every rank those to which an edge leads, ascending."""
    after: list[set[int]] = [set() for _ in range(fabric.ranks)]
    for edge in fabric.edges:
        after[edge.source].add(edge.target)
    return [sorted(targets) for targets in after]


def _distances(after: Sequence[Sequence[int]], start: int) -> dict[int, int]:
    """Edges from a rank to every one that it reaches."""
    found, frontier = {start: 0}, [start]
    for rank in frontier:
        if len(found) == len(after):
            break
        for other in after[rank]:
            if other not in found:
                found[other] = found[rank] + 1
                frontier.append(other)
    return found
