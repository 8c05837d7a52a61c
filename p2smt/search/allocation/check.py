"""What an answer to an allocation problem is and costs, without a solver: THE CHECK."""

from __future__ import annotations

from p2smt.problems.allocation import AllocationProblem, Counts, Load, Shares, WayTicks


def entity_load(problem: AllocationProblem, load: Load, entity: int, counts: Counts) -> int:
    """The load of an entity's uplink under an answer."""
    held = [sum(row[p] for p in problem.entities[entity]) for row in counts]
    if isinstance(load, Shares):
        return sum(load.sent[sum(held[b] for b in group)] for group in load.groups)
    out = sum(k * max(0, held[a] - held[b]) for a, b, k in load.edges)
    into = sum(k * max(0, held[b] - held[a]) for a, b, k in load.edges)
    return max(out, into)


def ticks_of(problem: AllocationProblem, counts: Counts) -> int:
    """The objective of an answer."""
    cost = [min(_way(problem, way, counts) for way in ways) for ways in problem.requests]
    return max(cost) if problem.worst else sum(cost)


def _way(problem: AllocationProblem, way: WayTicks, counts: Counts) -> int:
    found = [way.least]
    for entity, uplink in enumerate(way.uplinks):
        if uplink is not None:
            load = entity_load(problem, problem.loads[uplink.load], entity, counts)
            found.append(uplink.ticks[min(load, len(uplink.ticks) - 1)])
    return max(found)


def is_allocation(problem: AllocationProblem, counts: Counts) -> bool:
    """Whether an answer places every cell of every block, within the pools and what is held."""
    if any(sum(row) != problem.members or min(row) < 0 for row in counts):
        return False
    totals = [sum(column) for column in zip(*counts, strict=True)]
    held = all(
        all(sum(counts[b][p] for b in one.blocks) == wanted for p, wanted in enumerate(one.counts))
        for one in problem.held
    )
    fits = all(n <= size for n, size in zip(totals, problem.pools, strict=True))
    return held and fits and len(counts) == problem.blocks
