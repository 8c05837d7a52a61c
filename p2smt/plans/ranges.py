"""The ranges of an answer's prices: of its requests, step by step, and of the whole iteration.

How ranges combine is said in :mod:`p2smt.cost.accuracy`: low sums with low and high with high.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

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
from p2smt.plans.solution import Alternative, RequestAnswer, objective, rank_alternative
from p2smt.programs.program import Hierarchy, Program
from p2smt.result import SAME


@dataclass(frozen=True, slots=True)
class RequestRange:
    """The range of one execution of a request, and of each step (of one chunk); None: no time."""

    whole: PriceRange | None
    steps: tuple[PriceRange | None, ...]


def range_of_request(
    topology: Topology, answer: RequestAnswer, groups: IntArray | None = None
) -> RequestRange:
    """The range of one execution, and its steps'.

    ``groups``: the devices of each group, of a rank list, whose hierarchy says nothing of levels.
    """
    program, hierarchy = answer.program, answer.hierarchy
    if program is not None and groups is None:
        steps = range_of_program(topology, hierarchy, program, answer.steps).steps
    else:
        whole = members_in_node(topology, hierarchy, 0, hierarchy.depth) if groups is None else 0
        local = whole if groups is None else most_in_node(topology, groups)
        one = [answer.request.kind.value] * len(answer.steps)
        names = one if program is None else _operations(program)
        pairs = zip(names, answer.steps, strict=True)
        steps = tuple(range_of_step(topology, name, step, local) for name, step in pairs)
    return RequestRange(_whole(steps, answer.seconds, answer.chunks), steps)


def _operations(program: Program) -> list[str]:
    return [one.collective.value for one in program.instructions]


def range_of_program(
    topology: Topology, hierarchy: Hierarchy, program: Program, steps: Sequence[StepTime]
) -> RequestRange:
    """The range of a program whose steps take so long, in one chunk."""
    groupings = map(hierarchy.grouping, program.instructions)
    local = (members_in_node(topology, hierarchy, one.outer, one.inner) for one in groupings)
    each = zip(_operations(program), steps, local, strict=True)
    found = tuple(range_of_step(topology, *one) for one in each)
    return RequestRange(_whole(found, sum(step.seconds for step in steps), 1), found)


def _whole(steps: Sequence[PriceRange | None], seconds: float, chunks: int) -> PriceRange | None:
    """The range of all steps together, which take so long in so many chunks."""
    whole = summed([one for one in steps if one is not None])
    if whole is None or whole.seconds <= 0:
        return None
    whole = replace(whole.times(seconds / whole.seconds), seconds=seconds)
    return replace(whole, basis=PriceBasis.ASSUMED, why=PIPELINED) if chunks > 1 else whole


def range_of_step(
    topology: Topology, operation: str, step: StepTime, local: int
) -> PriceRange | None:
    """The range of one step, whose groups have so many members in a node."""
    what = priced_step(operation, step, local)
    return None if what is None else price_range(topology, what)


def priced_step(operation: str, step: StepTime, local: int) -> PricedStep | None:
    """What the price of one step is of; None: it takes no time."""
    level = next((n for n, rate in enumerate(step.level_s_per_byte) if rate > 0), None)
    if level is None or step.seconds <= 0:
        return None
    return PricedStep(operation, round(step.payload_bytes), step.seconds, level, local)


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
    """The range of an alternative's objective.

    On hosts that is of one collective per request, also where the requests have programs.
    """
    seconds = tuple(answer.seconds for answer in found.requests)
    if found.rank_list is not None and objective(problem, seconds) < found.objective_s * (1 - SAME):
        found = rank_alternative(problem, found.rank_list)
    return together(problem, [one.whole for one in request_ranges(problem, found)])


def range_of_answer(problem: Problem, found: Alternative) -> RequestRange:
    """The ranges of one execution of the first request of an alternative."""
    return next(request_ranges(problem, found))


def request_ranges(problem: Problem, found: Alternative) -> Iterator[RequestRange]:
    """Of each request of an alternative the ranges of one execution."""
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
