"""Brute force over allocation problems: every answer, and what it costs by the definitions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from p2smt.problems.allocation import AllocationProblem, Counts, Messages, WayTicks


def rows(members: int, pools: int) -> Iterator[tuple[int, ...]]:
    """Ways to put so many cells into pools."""
    for row in product(range(members + 1), repeat=pools):
        if sum(row) == members:
            yield row


def answers(problem: AllocationProblem) -> Iterator[Counts]:
    """Every answer that obeys pools, what is held and the limit."""
    for counts in product(rows(problem.members, len(problem.pools)), repeat=problem.blocks):
        columns = [sum(column) for column in zip(*counts, strict=True)]
        fits = all(n <= size for n, size in zip(columns, problem.pools, strict=True))
        held = all(
            [sum(counts[b][p] for b in one.blocks) for p in range(len(problem.pools))]
            == list(one.counts)
            for one in problem.held
        )
        if fits and held and not _over(problem, counts):
            yield counts


def _over(problem: AllocationProblem, counts: Counts) -> bool:
    return problem.at_most is not None and cost(problem, counts) > problem.at_most


def cost(problem: AllocationProblem, counts: Counts) -> int:
    """The objective of an answer."""
    each = [min(way_cost(problem, way, counts) for way in ways) for ways in problem.requests]
    return max(each) if problem.worst else sum(each)


def way_cost(problem: AllocationProblem, way: WayTicks, counts: Counts) -> int:
    """What one way costs."""
    most = way.least
    for entity, uplink in enumerate(way.uplinks):
        if uplink is None:
            continue
        held = [sum(row[p] for p in problem.entities[entity]) for row in counts]
        load = problem.loads[uplink.load]
        if isinstance(load, Messages):
            gaps = [(held[a] - held[b], k) for a, b, k in load.edges]
            away = sum(k * gap for gap, k in gaps if gap > 0)
            into = sum(-k * gap for gap, k in gaps if gap < 0)
            amount = max(away, into)
        else:
            amount = sum(load.sent[sum(held[b] for b in group)] for group in load.groups)
        most = max(most, uplink.ticks[min(amount, len(uplink.ticks) - 1)])
    return most


def optimum(problem: AllocationProblem) -> int | None:
    """The least objective; None: there is no answer."""
    return min((cost(problem, counts) for counts in answers(problem)), default=None)
