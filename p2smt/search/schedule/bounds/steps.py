"""The steps that every schedule has: data goes over one edge a step."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.errors import InputError
from p2smt.search.schedule.bounds.question import bounded, groups_of


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
    groups = groups_of(bounded(collective), fabric.ranks, root)
    wanted: dict[int, set[int]] = {}
    for pairs in groups:
        for source, target in pairs:
            wanted.setdefault(source, set()).add(target)
    best: tuple[int, int, int] | None = None
    after = _after(fabric)
    for source, targets in sorted(wanted.items()):
        found = _distances(after, source)
        for target in sorted(targets):
            if target not in found:
                rule = f"has no way to rank {target}, which needs its data"
                raise InputError(f"rank {source} of fabric {fabric.name[:60]}", rule)
            if best is None or found[target] > best[0]:
                best = (found[target], source, target)
    return None if best is None else best[1:]


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
