"""What symmetries take to each other, and when a rank can hold a chunk to any use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from p2smt.problems.schedule import DisseminationProblem

Pair = tuple[int, int]
Firsts = NDArray[np.int64]
"""For every chunk and every rank, or edge: the number of the first of those that symmetries take
the pair to; that of (chunk, n) is chunk * (how many n there are) + n."""


def send_firsts(problem: DisseminationProblem) -> Firsts:
    """For every chunk and edge the first pair that the symmetries take it to."""
    images = [symmetry.edges for symmetry in problem.symmetries]
    return _firsts(problem, images, len(problem.edges))


def hold_firsts(problem: DisseminationProblem) -> Firsts:
    """For every chunk and rank the first pair that the symmetries take it to."""
    images = [symmetry.ranks for symmetry in problem.symmetries]
    return _firsts(problem, images, problem.ranks)


def send_orbits(problem: DisseminationProblem) -> Mapping[Pair, Pair]:
    """Every pair (chunk, edge), and the first of those that the symmetries take it to."""
    return _as_pairs(send_firsts(problem))


def hold_orbits(problem: DisseminationProblem) -> Mapping[Pair, Pair]:
    """Every pair (chunk, rank), and the first of those that the symmetries take it to."""
    return _as_pairs(hold_firsts(problem))


def spell(near: int | None, left: int | None, steps: int) -> range:
    """The times 0..steps at which a rank can hold a chunk to any use.

    ``near``: steps from the chunk's root; ``left``: steps to the nearest goal; None: no way.
    """
    return range(0) if near is None or left is None else range(near, steps - left + 1)


def _firsts(problem: DisseminationProblem, images: Sequence[Sequence[int]], size: int) -> Firsts:
    """Pairs of a chunk and one of ``size`` things that the symmetries permute by ``images``.

    Every pair takes the least number from its images, and from where that came from, until
    nothing changes.
    """
    chunks = len(problem.chunks)
    moves = [
        (np.array(one.chunks)[:, None] * size + np.array(image)[None, :]).ravel()
        for one, image in zip(problem.symmetries, images, strict=True)
    ]
    first = np.arange(chunks * size)
    while True:
        before = first
        for move in moves:
            least = np.minimum(first, first[move])
            least[move] = np.minimum(least[move], least)
            first = least
        first = first[first]
        if np.array_equal(first, before):
            return first.reshape(chunks, size)


def _as_pairs(firsts: Firsts) -> Mapping[Pair, Pair]:
    chunks, size = firsts.shape
    return {(c, n): divmod(int(firsts[c, n]), size) for c in range(chunks) for n in range(size)}
