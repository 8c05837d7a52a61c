"""What the programs of an all-to-all mean: where every block lies, step by step.

An all-to-all over k ranks moves a block from each rank to each.  Its programs are all-to-alls over
some levels each, one after the other: a rank is its digits, one for each level, and a step over
some levels sends a block to the member of the group that has the digits of its destination there.
A program is valid if in the end rank d holds the block of each source s at place s, as after the
single all-to-all.

``held[rank, place]`` is the number of a block, source * k + destination.  The local order is part
of the meaning, since a library's all-to-all sends the first part of a buffer to the first member
and so on: before a step a rank packs its blocks by the member that they go to, each member's in the
order in which they lie, and what comes from a member it puts where the blocks for that member lay.
Packing changes nothing, and is no copy, where the levels of a step begin at the outermost.

Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in
multiport message-passing systems" (IEEE TPDS, 1997) has such exchanges digit by digit.  This is the
specification, of which encodings and executors know nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from p2smt.parallelism.placement import IntArray
from p2smt.programs.preconditions import Violation, ViolationKind
from p2smt.programs.program import Grouping, Hierarchy, Program, local_groups
from p2smt.programs.semantics import Trace

MAX_EXCHANGED = 1024
"""Largest group of which every block is followed: 1,048,576 of them."""
BUFFERS = 2
"""What is sent and what is received: how many times its payload a rank holds."""


def exchange_factors(factors: tuple[int, ...], most: int = MAX_EXCHANGED) -> tuple[int, ...]:
    """The factors on which programs are checked: the real ones, or twos for too many ranks.

    Twos say the same: a step over levels whose digits have all to be delivered yet delivers them,
    whatever their numbers are, and one over a level that was delivered sends all there to one
    member, which is uneven from two members on (docs/small-model.md).
    """
    return factors if math.prod(factors) <= most else (2,) * len(factors)


def exchange_trace(hierarchy: Hierarchy, program: Program, factors: tuple[int, ...]) -> Trace:
    """The run of an all-to-all's program on ranks with these factors; rows are those of the real
    ones."""
    held, payloads = start_places(math.prod(factors)), list[int]()
    rows = hierarchy.size
    for number, instruction in enumerate(program.instructions, start=1):
        if is_delivered(held):
            text = f"step {number}: the goal is reached before it"
            broken = Violation(ViolationKind.AFTER_GOAL, number, (), None, None, text)
            return Trace(broken, tuple(payloads), BUFFERS * rows)
        after = _exchanged(held, factors, hierarchy.grouping(instruction), number)
        if isinstance(after, Violation):
            return Trace(after, tuple(payloads), BUFFERS * rows)
        held = after
        payloads.append(rows)
    return Trace(_missed(held, len(program)), tuple(payloads), BUFFERS * rows)


def start_places(ranks: int) -> IntArray:
    """Place d of a rank holds its block for rank d."""
    return np.arange(ranks * ranks, dtype=np.int64).reshape(ranks, ranks)


def is_delivered(held: IntArray) -> bool:
    """Place s of a rank holds the block that rank s had for it."""
    return bool((held == start_places(len(held)).T).all())


def _exchanged(
    held: IntArray, factors: Sequence[int], grouping: Grouping, step: int
) -> IntArray | Violation:
    """Where blocks lie after an all-to-all on these groups, or the rule that it breaks."""
    if grouping.master:
        text = f"step {step} (all-to-all): between masters alone the blocks of others stay behind"
        return Violation(ViolationKind.GROUP_SHAPE, step, (), None, None, text)
    groups, ranks = local_groups(factors, grouping), len(held)
    members = groups.shape[1]
    member = np.empty(ranks, dtype=np.int64)
    member[groups] = np.arange(members)
    takers = member[held % ranks]  # of each block, by its destination
    cells = (np.arange(ranks)[:, None] * members + takers).ravel()
    counts = np.bincount(cells, minlength=ranks * members).reshape(ranks, members)
    uneven = np.argwhere(counts * members != ranks)
    if len(uneven):
        rank, taker = uneven[0].tolist()
        group = tuple(next(row for row in groups.tolist() if rank in row))
        text = (
            f"step {step} (all-to-all): device {rank} has {counts[rank, taker]} of its {ranks} "
            f"blocks for device {group[taker]} and {ranks // members} are each member's share: "
            "a step before it crossed one of its levels"
        )
        return Violation(ViolationKind.UNEVEN_BLOCKS, step, group, rank, None, text)
    packing = np.argsort(takers, axis=1, kind="stable")
    packed = np.take_along_axis(held, packing, axis=1).reshape(ranks, members, -1)
    received = np.empty_like(packed)
    received[groups] = packed[groups].swapaxes(1, 2)
    after = np.empty_like(held)
    np.put_along_axis(after, packing, received.reshape(ranks, ranks), axis=1)
    return after


def _missed(held: IntArray, steps: int) -> Violation | None:
    if is_delivered(held):
        return None
    ranks = len(held)
    rank, place = np.argwhere(held != start_places(ranks).T)[0].tolist()
    source, destination = divmod(int(held[rank, place]), ranks)
    text = (
        f"after step {steps} device {rank} holds the block from {source} for {destination} "
        f"where that from {place} for it belongs"
    )
    return Violation(ViolationKind.GOAL_MISSED, steps, (), rank, place, text)
