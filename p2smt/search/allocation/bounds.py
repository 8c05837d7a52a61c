"""A simple bound: what each switch needs alone, with groups in blocks and messages along them.

If a switch holds c cells of P blocks of D, fewer messages between blocks mean more blocks that it
holds in part (:func:`p2smt.problems.allocation.parts_held`).  So for each time that the messages
may take, the groups take at least so long; the least of both over all such times is a bound.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from p2smt.problems.allocation import (
    AllocationProblem,
    Load,
    Messages,
    Shares,
    UplinkTicks,
    WayTicks,
    least_parts,
)

MOST_STEPS = 400
"""Times of the messages that are told apart; between two of them the best of both counts."""


def alone_ticks(problem: AllocationProblem) -> int:
    """No answer to a question of blocks costs less, in ticks."""
    least = [min(way.least for way in ways) for ways in problem.requests]
    chosen = next((r for r, ways in enumerate(problem.requests) if _chained(problem, ways)), None)
    if chosen is None:
        return _joined(problem, _with_parts(problem, least, [problem.members] * _entities(problem)))
    way, found = problem.requests[chosen][0], []
    steps = sorted({t for u in _uplinks(way) for t in u.ticks} | {way.least})
    steps = steps[:: 1 + len(steps) // MOST_STEPS]
    for at_least, below in pairwise([*steps, 2 * steps[-1] + 2]):
        moved = [problem.members if u is None else _most(u, below - 1) for u in way.uplinks]
        costs = [max(c, at_least) if r == chosen else c for r, c in enumerate(least)]
        joined = _with_parts(problem, costs, moved)
        if joined is not None:
            found.append(_joined(problem, joined))
    return min(found, default=_joined(problem, least))


def _entities(problem: AllocationProblem) -> int:
    return len(problem.entities)


def _uplinks(way: WayTicks) -> Iterator[UplinkTicks]:
    return (uplink for uplink in way.uplinks if uplink is not None)


def _joined(problem: AllocationProblem, ticks: Sequence[int] | None) -> int:
    if ticks is None:
        return 0
    return max(ticks) if problem.worst else sum(ticks)


def _most(uplink: UplinkTicks, ticks: int) -> int:
    """The largest load that costs no more; of a flat end any load does."""
    found = bisect_right(uplink.ticks, ticks) - 1
    return found if found < len(uplink.ticks) - 1 else max(found, 2**31)


def _with_parts(
    problem: AllocationProblem, costs: Sequence[int], moved: Sequence[int]
) -> list[int] | None:
    """The costs with what groups take at least; None: so few messages cannot be."""
    parts = [least_parts(problem, e, max(0, m)) for e, m in enumerate(moved)]
    if any(count > problem.blocks for count in parts):
        return None
    return [
        max(cost, min(_shared(problem, way, parts) for way in ways))
        for cost, ways in zip(costs, problem.requests, strict=True)
    ]


def _shared(problem: AllocationProblem, way: WayTicks, parts: Sequence[int]) -> int:
    """What the groups of a way take, if each entity holds so many blocks in part."""
    most = way.least
    each = [_least_sent(problem, load) for load in problem.loads]
    for count, uplink in zip(parts, way.uplinks, strict=True):
        if uplink is not None:
            sent = count * each[uplink.load]
            most = max(most, uplink.ticks[min(sent, len(uplink.ticks) - 1)])
    return most


def _least_sent(problem: AllocationProblem, load: Load) -> int:
    """What a block in part sends at least, where each block is a group of its own; or nothing."""
    if not isinstance(load, Shares) or problem.members == 1:
        return 0
    apart = load.groups == tuple((b,) for b in range(problem.blocks))
    return min(load.sent[1:-1]) if apart else 0


def _chained(problem: AllocationProblem, ways: Sequence[WayTicks]) -> bool:
    """Whether a request has one way, whose messages go from each block to the next."""
    loads: list[Load] = [problem.loads[u.load] for u in _uplinks(ways[0])]
    steps = tuple((b, b + 1, 1) for b in range(problem.blocks - 1))
    chain = all(isinstance(load, Messages) and load.edges == steps for load in loads)
    return len(ways) == 1 and bool(loads) and chain
