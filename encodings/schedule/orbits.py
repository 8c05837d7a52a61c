"""What symmetries take to each other, and when a rank can hold a chunk to any use."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from p2smt.problems.ports import EdgePorts
from p2smt.problems.schedule import DisseminationProblem

Pair = tuple[int, int]
Firsts = NDArray[np.int64]
"""For every chunk and every rank, or edge: the number of the first of those that symmetries take
the pair to; that of (chunk, n) is chunk * (how many n there are) + n."""


def send_firsts(problem: DisseminationProblem) -> Firsts:
    """For every chunk and edge the first pair that the symmetries take it to."""
    images = [symmetry.edges for symmetry in problem.symmetries]
    return _firsts(problem, images, len(problem.edges))


def port_firsts(problem: DisseminationProblem, ports: EdgePorts) -> Firsts:
    """For every chunk and port the first pair that the symmetries take it to.

    These must take the edges of a port to those of a port.
    """
    return _firsts(problem, [ports.image(one) or () for one in problem.symmetries], len(ports))


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


# Routes that load a fabric evenly, for chunks with one goal each: a guess where to look first.
# Each chunk takes a shortest way; those that symmetries take to each other take images of one way.
# Ways are chosen one after the other, and again in some sweeps, so that edges of which much is
# asked are avoided.  Schedules with other routes are left out, so that there is none says nothing.


SWEEPS = 4


def even_routes(problem: DisseminationProblem) -> frozenset[Pair] | None:
    """(chunk, edge) of the messages to allow, of each orbit one; None: a chunk has several goals.

    Every goal must be reachable.
    """
    if any(len(chunk.goals) != 1 for chunk in problem.chunks):
        return None
    kinds = _edge_kinds(problem)
    mates = Counter(kinds)
    chosen: dict[int, list[int]] = {}
    loads: Counter[int] = Counter()
    drawn = random.Random(0)
    leaders = _leaders(problem)
    for _ in range(SWEEPS):
        for c in sorted(leaders):
            for e in chosen.get(c, []):
                loads[kinds[e]] -= leaders[c]
            chosen[c] = _way(problem, c, {k: loads[k] / mates[k] for k in mates}, kinds, drawn)
            for e in chosen[c]:
                loads[kinds[e]] += leaders[c]
    return frozenset((c, e) for c, way in chosen.items() for e in way)


def _leaders(problem: DisseminationProblem) -> Counter[int]:
    """The first chunk of every orbit, and how many chunks are in it."""
    return Counter(_classes([one.chunks for one in problem.symmetries], len(problem.chunks)))


def _edge_kinds(problem: DisseminationProblem) -> list[int]:
    """Of every edge the first one that symmetries take it to."""
    return _classes([one.edges for one in problem.symmetries], len(problem.edges))


def _classes(images: list[tuple[int, ...]], size: int) -> list[int]:
    first = np.arange(size)
    while True:
        before = first
        for image in images:
            moved = np.array(image)
            least = np.minimum(first, first[moved])
            least[moved] = np.minimum(least[moved], least)
            first = least
        first = first[first]
        if np.array_equal(first, before):
            return [int(n) for n in first]


def _way(
    problem: DisseminationProblem,
    chunk: int,
    loads: dict[int, float],
    kinds: list[int],
    drawn: random.Random,
) -> list[int]:
    """A shortest way whose edges carry least, by the squares of what they carry."""
    (goal,), root = problem.chunks[chunk].goals, problem.chunks[chunk].root
    left = problem.distances([goal], back=True)
    cost: dict[int, tuple[float, list[int]]] = {goal: (0.0, [])}
    out: dict[int, list[int]] = {}
    for e, (source, target, _) in enumerate(problem.edges):
        here, there = left[source], left[target]
        if here is not None and there is not None and here == there + 1:
            out.setdefault(source, []).append(e)
    order = sorted((r for r in out if left[r] is not None), key=lambda r: left[r] or 0)
    for rank in order:
        options = []
        for e in out[rank]:
            price, way = cost[problem.edges[e][1]]
            again = sum(kinds[e] == kinds[other] for other in way)
            options.append((price + loads[kinds[e]] + again, drawn.random(), [e, *way]))
        best = min(options)
        cost[rank] = best[0], best[2]
    return cost[root][1]


# When the variables of a model of messages need not be 0, and how many they are, by arrays before
# any is made.


Steps = NDArray[np.int64]


def variable_count(
    problem: DisseminationProblem, sends: Iterable[PortTimes], hold_of: Firsts
) -> int:
    """Messages and held chunks, of each orbit the first, by the steps at which they can be."""
    near = cache(lambda root: _row(problem, problem.distances([root])))
    left = cache(lambda goals: _row(problem, problem.distances(goals, back=True)))
    nears = np.array([near(one.root) for one in problem.chunks])
    lefts = np.array([left(one.goals) for one in problem.chunks])
    c, v = _pairs_first_of_orbit(hold_of)
    held = int(np.maximum(problem.steps - lefts[c, v] - nears[c, v] + 1, 0).sum())
    return held + sum(int((one.end - one.begin).sum()) for one in sends)


class PortTimes(NamedTuple):
    """Ports that messages of a chunk can pass from step ``begin`` up to, but without, ``end``."""

    chunk: int
    ports: Steps
    begin: Steps
    end: Steps


def port_times(problem: DisseminationProblem, ports: EdgePorts, firsts: Firsts) -> list[PortTimes]:
    """When messages can leave where the chunk is, and help where they come to.

    Of pairs of a chunk and a port the first of each orbit; messages to the root never help.
    """
    near = cache(lambda root: _row(problem, problem.distances([root])))
    left = cache(lambda goals: _row(problem, problem.distances(goals, back=True)))
    source, target = np.array([edge[:2] for edge in problem.edges]).reshape(-1, 2).T
    found, size = [], len(ports)
    for c in np.unique(firsts // size).tolist():
        one = problem.chunks[c]
        useful = target != one.root
        begin, end = np.full(size, problem.steps), np.zeros(size, dtype=np.int64)
        for passed in (np.array(ports.leaves), np.array(ports.arrives)):
            np.minimum.at(begin, passed[useful], near(one.root)[source[useful]])
            np.maximum.at(end, passed[useful], problem.steps - left(one.goals)[target[useful]])
        own = np.flatnonzero((firsts[c] == c * size + np.arange(size)) & (begin < end))
        found.append(PortTimes(c, own, begin[own], end[own]))
    return found


def _row(problem: DisseminationProblem, distances: tuple[int | None, ...]) -> Steps:
    """Distances; where there is no way, more than all steps."""
    far = 2 * problem.steps + 2
    return np.array([far if one is None else one for one in distances], dtype=np.int64)


def _pairs_first_of_orbit(firsts: Firsts) -> tuple[Steps, Steps]:
    """The pairs that are the first of their orbit."""
    own = np.flatnonzero(firsts.ravel() == np.arange(firsts.size))
    return own // firsts.shape[1], own % firsts.shape[1]
