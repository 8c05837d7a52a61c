"""Symmetries of small fabrics by brute force, and of all-reduces on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from p2smt.fabric.fabric import Fabric
from p2smt.problems.schedule import ScheduleSymmetry


def rank_maps(fabric: Fabric) -> Iterator[tuple[int, ...]]:
    """Permutations of the ranks that keep the bandwidth of every link; no edges side by side."""
    width = {
        (edge.source, edge.target): min(fabric.capacities[k].bandwidth for k in edge.loads)
        for edge in fabric.edges
    }

    def grown(image: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        at = len(image)
        if at == fabric.ranks:
            yield image
            return
        for rank in set(range(fabric.ranks)) - set(image):
            both = [((at, n), (rank, m)) for n, m in enumerate(image)]
            if all(
                width.get(a) == width.get(b) and width.get(a[::-1]) == width.get(b[::-1])
                for a, b in both
            ):
                yield from grown((*image, rank))

    return grown(())


def symmetry(
    fabric: Fabric, ranks: Sequence[int], chunks: Sequence[int], reverses: bool = False
) -> ScheduleSymmetry:
    """The symmetry that moves ranks and chunks so; ``reverses``: and turns edges round."""
    number = {(edge.source, edge.target): n for n, edge in enumerate(fabric.edges)}
    ends = [(ranks[edge.source], ranks[edge.target]) for edge in fabric.edges]
    edges = tuple(number[(b, a) if reverses else (a, b)] for a, b in ends)
    return ScheduleSymmetry(tuple(ranks), edges, tuple(chunks), reverses)


def closed(maps: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """The group that permutations generate, the identity first."""
    start = tuple(range(len(maps[0])))
    found = {start: None}
    frontier = [start]
    for one in frontier:
        for other in maps:
            after = tuple(other[n] for n in one)
            if after not in found:
                found[after] = None
                frontier.append(after)
    return tuple(found)


def regular(
    fabric: Fabric, maps: Sequence[tuple[int, ...]], chunks: int, reversing: bool = False
) -> tuple[ScheduleSymmetry, ...]:
    """A group on chunks in orbits as large as itself: chunk = orbit x order + element.

    ``reversing``: the group, and each of its elements with time turned round, twice as many.
    """
    group = closed(maps)
    number = {one: n for n, one in enumerate(group)}
    order = len(group) * (2 if reversing else 1)
    assert chunks % order == 0

    def moved(one: tuple[int, ...], turn: int) -> tuple[int, ...]:
        image = []
        for chunk in range(chunks):
            orbit, at = divmod(chunk, order)
            half, element = divmod(at, len(group))
            after = number[tuple(one[n] for n in group[element])]
            image.append(orbit * order + (half ^ turn) * len(group) + after)
        return tuple(image)

    plain = [symmetry(fabric, one, moved(one, 0)) for one in maps]
    turned = [symmetry(fabric, group[0], moved(group[0], 1), True)] if reversing else []
    return (*plain, *turned)
