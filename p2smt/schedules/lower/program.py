"""Lowers programs and the requests of plans to schedules.

A rank is a device in hierarchy order.  The payload of a request over k members has k rows; a row
has as many chunks as the even split of every all-reduce needs, once for each pipelined piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from p2smt.collectives.names import DIRECT, Collective, RequestKind
from p2smt.errors import InputError
from p2smt.plans.problem import check_send, plan_problem
from p2smt.programs.program import lower, parse_instruction
from p2smt.schedules.lower.assemble import DEFAULT, Lowering, lower_exchange, schedule_of_steps

if TYPE_CHECKING:
    from p2smt.parallelism.placement import IntArray
    from p2smt.plans.file_model import AnyPlan, RequestModel
    from p2smt.programs.program import Hierarchy, Program
    from p2smt.schedules.lower.rows import RankGroup
    from p2smt.schedules.model import Schedule

MAX_RANKS = 1024


def lower_program(
    program: Program,
    hierarchy: Hierarchy,
    kind: RequestKind = RequestKind.ALL_REDUCE,
    how: Lowering = DEFAULT,
    groups: Sequence[RankGroup] | None = None,
) -> Schedule:
    """The schedule of a program in every reduction group.

    groups: reduction groups of ``hierarchy.size`` ranks that together are 0, 1, ..; None: one.

    Raises:
        InputError: unknown levels, members that hold different rows, or too large a schedule.
    """
    _check_ranks(hierarchy.size * len(groups or [()]))
    own = np.array(groups or [tuple(range(hierarchy.size))], dtype=np.int64)
    steps = [
        (i.collective, _tuples(lower(own, hierarchy.factors, hierarchy.grouping(i))))
        for i in program.instructions
    ]
    return schedule_of_steps(str(program), kind, _tuples(own), steps, how)


def lower_plan(
    plan: AnyPlan, request: int = 0, how: Lowering | None = None, source: str = "plan"
) -> Schedule:
    """The schedule of a plan's request (by its index), on the groups that the file lists.

    how: None: rings, in as many pieces as the plan says.  An all-to-all or a send has one step,
        whose messages go directly and out of place.

    Raises:
        InputError: no such request, groups or instructions that do not fit, or too large a
            schedule.
    """
    if not 0 <= request < len(plan.requests):
        raise InputError(f"{source}: request {request}", f"there are {len(plan.requests)}, from 0")
    problem, where = plan_problem(plan, source)
    _check_ranks(problem.topology.devices)
    model = plan.requests[request]
    groups = _tuples(where.groups(problem.axis_indices(problem.requests[request])))
    listed = [tuple(tuple(sorted(group)) for group in step.groups) for step in model.steps]
    how = how or DEFAULT
    if how.pieces is None and len(listed) > 1:
        how = replace(how, pieces=model.chunks)
    name = f"{model.kind.value} {'+'.join(model.axes)}"
    check_send(problem, problem.requests[request], where, source)
    if not model.kind.has_programs:
        return lower_exchange(name, model.kind, groups, listed)
    collectives = [_collective(model, step.instruction) for step in model.steps]
    steps = list(zip(collectives, listed, strict=True))
    return schedule_of_steps(name, model.kind, groups, steps, how, _shards(model, len(groups[0])))


def _collective(model: RequestModel, instruction: str) -> Collective:
    """The one collective of a request without a program, or that of an instruction."""
    if model.program is None:
        return DIRECT[model.kind]
    return parse_instruction(instruction).collective


def _shards(model: RequestModel, size: int) -> Sequence[int] | None:
    """The rows that the members are claimed to end with."""
    if model.shards is not None and sorted(model.shards) != list(range(size)):
        raise InputError(
            f"shards {model.shards[:8]}", f"are not the rows 0 to {size - 1}, each once"
        )
    return model.shards


def _check_ranks(ranks: int) -> None:
    if ranks > MAX_RANKS:
        raise InputError(f"{ranks} ranks", f"schedules are made for at most {MAX_RANKS}")


def _tuples(groups: IntArray) -> list[RankGroup]:
    return [tuple(group) for group in groups.tolist()]
