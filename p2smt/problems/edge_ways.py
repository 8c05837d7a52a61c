"""Ways along edges, as problems of schedules have these."""

from __future__ import annotations

from collections.abc import Sequence

EdgeRow = tuple[int, int, tuple[int, ...]]
"""Source, target, loaded capacities."""


def edge_distances(
    ranks: int, edges: Sequence[EdgeRow], sources: Sequence[int], *, back: bool = False
) -> tuple[int | None, ...]:
    """Edges from the nearest of ``sources`` to each rank (``back``: to it); None: no way."""
    after: list[list[int]] = [[] for _ in range(ranks)]
    for source, target, _ in edges:
        after[target if back else source].append(source if back else target)
    found: list[int | None] = [None] * ranks
    frontier = list(dict.fromkeys(sources))
    for start in frontier:
        found[start] = 0
    for rank in frontier:
        here = found[rank]
        for other in after[rank]:
            if found[other] is None and here is not None:
                found[other] = here + 1
                frontier.append(other)
    return tuple(found)
