"""What follows, or picks one of equals: C9 and C10 of :mod:`p2smt.encodings.allocation.cpsat`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from ortools.sat.python import cp_model

from p2smt.problems.allocation import AllocationProblem, Messages, Shares, least_parts

_Key = tuple[int, tuple[int, ...]]


def c9_alone(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    largest: Mapping[_Key, cp_model.IntVar],
) -> None:
    """C9: given the messages k of entities, their k of shares is at least what one needs alone."""
    for chain in (i for i, load in enumerate(problem.loads) if _is_chain(problem, load)):
        for part, share in _parts(problem):
            for (message, ticks), moved in _of(largest, chain):
                for (other, ticks_of_share), shared in _of(largest, part):
                    both = _entities(problem, (message, ticks)) & _entities(
                        problem, (other, ticks_of_share)
                    )
                    if both:
                        _staircase(model, problem, sorted(both), moved, shared, share)


def _of(
    largest: Mapping[_Key, cp_model.IntVar], load: int
) -> Iterator[tuple[_Key, cp_model.IntVar]]:
    return ((key, k) for key, k in largest.items() if key[0] == load)


def _entities(problem: AllocationProblem, key: _Key) -> set[int]:
    """The entities whose load goes into a k."""
    return {
        e
        for ways in problem.requests
        for way in ways
        for e, uplink in enumerate(way.uplinks)
        if uplink is not None and (uplink.load, uplink.ticks) == key
    }


def _is_chain(problem: AllocationProblem, load: Messages | Shares) -> bool:
    """Whether messages go from each block to the next, one a cell."""
    steps = tuple((b, b + 1, 1) for b in range(problem.blocks - 1))
    return isinstance(load, Messages) and load.edges == steps


def _parts(problem: AllocationProblem) -> Iterator[tuple[int, int]]:
    """Loads with a group for each block whose share is the same for every part, and that share."""
    each = tuple((b,) for b in range(problem.blocks))
    for i, load in enumerate(problem.loads):
        if isinstance(load, Shares) and load.groups == each and len(set(load.sent[1:-1])) == 1:
            yield i, load.sent[1]


def _staircase(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    entities: list[int],
    moved: cp_model.IntVar,
    shared: cp_model.IntVar,
    share: int,
) -> None:
    """Below each step of ``moved`` there are so many parts."""
    before = -1
    for limit in reversed(range(problem.members + 1)):
        parts = max(least_parts(problem, e, limit) for e in entities)
        if parts <= before:
            continue
        before = parts
        if limit == problem.members:
            model.add(shared >= share * parts)
            continue
        more = model.new_bool_var("more")
        model.add(moved >= limit + 1).only_enforce_if(more)
        if parts <= problem.blocks:
            model.add(shared >= share * parts).only_enforce_if(more.negated())
        else:
            model.add(more == 1)


def c10_exchanges(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    cells: Mapping[tuple[int, int], cp_model.IntVar],
) -> None:
    """C10: blocks that are alike ascend by weight; the chain's first is no heavier than its last.

    A block weighs its cells by the kinds of their pools, so pools that are alike weigh the same;
    of those the first block's cells descend.
    """
    kinds = _kinds(problem)
    if problem.held or problem.members == 1:
        return
    for first, second in pairwise(range(len(kinds))):
        if kinds[first] == kinds[second]:
            model.add(cells[0, first] >= cells[0, second])
    weight = [
        sum((kind + 1) ** 2 * cells[b, p] for p, kind in enumerate(kinds))
        for b in range(problem.blocks)
    ]
    if problem.alike:
        for lighter, heavier in pairwise(weight):
            model.add(lighter <= heavier)
    elif problem.mirrored:
        model.add(weight[0] <= weight[-1])


def _kinds(problem: AllocationProblem) -> list[int]:
    """A number for each pool, the same for neighbours that can be exchanged.

    Those are pools of as many hosts whose switches hold nothing else, and cost as much.
    """
    found: list[int] = []
    for pool in range(len(problem.pools)):
        same = pool > 0 and _kind(problem, pool) == _kind(problem, pool - 1)
        found.append(found[-1] if same else len(found))
    return found


def _kind(problem: AllocationProblem, pool: int) -> tuple[object, ...]:
    around = [e for e, pools in enumerate(problem.entities) if pool in pools]
    alone = [e for e in around if len(problem.entities[e]) == 1]
    outer = tuple(e for e in around if e not in alone)
    prices = tuple(
        tuple(way.uplinks[e] for e in alone) for ways in problem.requests for way in ways
    )
    return problem.pools[pool], outer, prices
