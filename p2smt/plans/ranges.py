"""The ranges of an answer's prices: of its requests, step by step, and of the whole iteration.

How ranges combine is said in :mod:`p2smt.cost.accuracy`: low sums with low and high with high.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from p2smt.cluster.topology import Topology
from p2smt.cost.accuracy import (
    PIPELINED,
    PriceBasis,
    PricedStep,
    PriceRange,
    largest,
    most_in_node,
    price_range,
    summed,
)
from p2smt.cost.requested_algorithms import running
from p2smt.cost.step_time import StepTime
from p2smt.parallelism.placement import IntArray, rank_groups
from p2smt.parallelism.request import Problem, Request
from p2smt.programs.program import Hierarchy, Instruction

if TYPE_CHECKING:
    from p2smt.plans.solution import Alternative, RequestAnswer


def range_of_request(
    topology: Topology, answer: RequestAnswer, groups: IntArray | None = None
) -> PriceRange | None:
    """The range of one execution; None where it takes no time.

    ``groups``: the devices of each group, of a rank list, whose hierarchy says nothing of levels.
    """
    if answer.program is None:
        operation = answer.request.kind.value
        names: Sequence[str] = (operation,) * len(answer.steps)
    else:
        names = [one.collective.value for one in answer.program.instructions]
    local = None if groups is None else most_in_node(topology, groups)
    found = [
        range_of_step(topology, name, step, _local(topology, answer, n) if local is None else local)
        for n, (name, step) in enumerate(zip(names, answer.steps, strict=True))
    ]
    whole = summed([one for one in found if one is not None])
    if whole is None or whole.seconds <= 0:
        return None
    whole = replace(whole.times(answer.seconds / whole.seconds), seconds=answer.seconds)
    if answer.chunks > 1:
        return replace(whole, basis=PriceBasis.ASSUMED, why=PIPELINED)
    return whole


def range_of_step(
    topology: Topology, operation: str, step: StepTime, local: int
) -> PriceRange | None:
    """The range of one step, whose groups have so many members in a node."""
    crossed = (level for level, rate in enumerate(step.level_s_per_byte) if rate > 0)
    level = next(crossed, None)
    if level is None or step.seconds <= 0:
        return None
    what = PricedStep(operation, round(step.payload_bytes), step.seconds, level, local)
    return price_range(topology, what)


def _local(topology: Topology, answer: RequestAnswer, n: int) -> int:
    """How many members of a group the n-th step has in a node."""
    hierarchy = answer.hierarchy
    if answer.program is None:
        return members_in_node(topology, hierarchy, 0, hierarchy.depth)
    instruction: Instruction = answer.program.instructions[n]
    grouping = hierarchy.grouping(instruction)
    return members_in_node(topology, hierarchy, grouping.outer, grouping.inner)


def members_in_node(topology: Topology, hierarchy: Hierarchy, outer: int, inner: int) -> int:
    """The product of the factors of those coordinates that lie inside a node."""
    levels = (topology.names.index(hierarchy.name(i + 1)) for i in range(outer, inner))
    sizes = zip(levels, hierarchy.factors[outer:inner], strict=True)
    return prod(size for level, size in sizes if level > topology.node_level)


def together(problem: Problem, found: Sequence[PriceRange | None]) -> PriceRange | None:
    """The range of an iteration, of those of one execution of each request.

    None where none takes any time.
    """
    pairs = zip(problem.requests, found, strict=True)
    known = [one.times(request.times) for request, one in pairs if one is not None]
    return summed(known) if problem.objective == "sum" else largest(known)


def range_of(problem: Problem, found: Alternative) -> PriceRange | None:
    """The range of an alternative's objective."""
    return together(problem, list(request_ranges(problem, found)))


def range_of_answer(problem: Problem, found: Alternative) -> PriceRange | None:
    """The range of one execution of the first request of an alternative."""
    return next(request_ranges(problem, found))


def request_ranges(problem: Problem, found: Alternative) -> Iterator[PriceRange | None]:
    """Of each request of an alternative the range of one execution."""
    topology = running(problem.topology, problem.algorithms)
    ranks = None if found.rank_list is None else found.placement.rank_tensor()
    for answer in found.requests:
        groups = None if ranks is None else _groups(problem, ranks, answer.request)
        yield range_of_request(topology, answer, groups)


def range_of_order(
    problem: Problem, ranks: IntArray, steps: Sequence[StepTime]
) -> PriceRange | None:
    """The range of ranks on devices in some order, with one collective per request."""
    topology = running(problem.topology, problem.algorithms)
    found = [
        range_of_step(
            topology,
            request.kind.value,
            step,
            most_in_node(topology, _groups(problem, ranks, request)),
        )
        for request, step in zip(problem.requests, steps, strict=True)
    ]
    return together(problem, found)


def _groups(problem: Problem, ranks: IntArray, request: Request) -> IntArray:
    return rank_groups(ranks, problem.axis_indices(request))
