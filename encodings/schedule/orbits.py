"""What symmetries take to each other, and when a rank can hold a chunk to any use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p2smt.problems.schedule import DisseminationProblem

Pair = tuple[int, int]


def send_orbits(problem: DisseminationProblem) -> Mapping[Pair, Pair]:
    """Every pair (chunk, edge), and the first of those that the symmetries take it to."""
    images = [symmetry.edges for symmetry in problem.symmetries]
    return _orbits(problem, images, len(problem.edges))


def hold_orbits(problem: DisseminationProblem) -> Mapping[Pair, Pair]:
    """Every pair (chunk, rank), and the first of those that the symmetries take it to."""
    images = [symmetry.ranks for symmetry in problem.symmetries]
    return _orbits(problem, images, problem.ranks)


def spell(near: int | None, left: int | None, steps: int) -> range:
    """The times 0..steps at which a rank can hold a chunk to any use.

    ``near``: steps from the chunk's root; ``left``: steps to the nearest goal; None: no way.
    """
    return range(0) if near is None or left is None else range(near, steps - left + 1)


def _orbits(
    problem: DisseminationProblem, images: Sequence[Sequence[int]], size: int
) -> Mapping[Pair, Pair]:
    """Pairs of a chunk and one of ``size`` things that the symmetries permute by ``images``."""
    first: dict[Pair, Pair] = {}
    chunks = [symmetry.chunks for symmetry in problem.symmetries]
    for start in ((c, n) for c in range(len(problem.chunks)) for n in range(size)):
        if start in first:
            continue
        first[start], frontier = start, [start]
        for c, n in frontier:
            for chunk_image, image in zip(chunks, images, strict=True):
                at = (chunk_image[c], image[n])
                if at not in first:
                    first[at] = start
                    frontier.append(at)
    return first
