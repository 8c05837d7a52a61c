"""Checks the steps of a plan's request: their groups, and what the program means on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from p2smt.collectives.demand import demand_of
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import IntArray
from p2smt.plans.file_model import RequestModel
from p2smt.plans.rank_program import check_on_ranks
from p2smt.plans.rank_scene import RankScene
from p2smt.programs import semantics
from p2smt.programs.check import check_program
from p2smt.programs.program import Program, lower, parse_instruction, parse_program
from p2smt.programs.semantics import Step, Trace, Violation, ViolationKind


def check_request(model: RequestModel, scene: Scene, groups: IntArray) -> tuple[Trace, str]:
    """The trace of a request's steps as the file lists them, and what it was run on.

    ``groups`` are the reduction groups of the request's axes.  A rank in a violation is a
    device of the first reduction group.

    Raises:
        InputError: a program or instruction that is no text of the language, or names a level
            that the topology lacks.
    """
    if model.program is None or not model.kind.has_programs:
        how = "one fixed step" if scene.hierarchy.size > 1 else "nothing to do"
        return Trace(_fixed_violation(model, scene, groups)), how
    trace, how = _check_program(model, parse_program(model.program), scene, groups)
    return _in_devices(trace, groups), how


def check_single_on_ranks(model: RequestModel, groups: IntArray) -> Violation | None:
    """A request on a rank list that is the one collective on the groups of its axes."""
    kind, alone = model.kind.value, groups.shape[1] == 1
    if model.program is not None:
        return _violation(0, f"a request {kind} on a rank list is one step and has no program")
    if len(model.steps) != (0 if alone else 1):
        wanted = "no step" if alone else "one step"
        return _violation(0, f"a request {kind} over {groups.shape[1]} devices needs {wanted}")
    if alone:
        return None
    step = model.steps[0]
    if step.instruction != kind or sorted(step.groups) != sorted(groups.tolist()):
        return _violation(1, f"step 1: is not {kind} on the groups of the axes")
    return None


def check_program_on_ranks(model: RequestModel, program: Program, scene: RankScene) -> Trace:
    """The trace of a request's program on a rank list, on every group.

    Violations name devices.

    Raises:
        InputError: a program or instruction that is no text of the language, or names a level
            that the topology lacks.
        TooLarge: a group has more members than states are checked for.
    """
    listed = tuple(parse_instruction(step.instruction) for step in model.steps)
    if listed != program.instructions:
        return _broken(0, "the instructions of the steps are not those of the program")
    checked = check_on_ranks(scene, program)
    if (broken := checked.trace.violation) is not None:
        group = scene.groups[checked.group].tolist()
        rank = None if broken.rank is None else group[broken.rank]
        members = tuple(group[position] for position in broken.group)
        text = broken.message + _counted_in(broken, group)
        named = replace(broken, group=members, rank=rank, message=text)
        return replace(checked.trace, violation=named)
    for number, (step, one) in enumerate(zip(model.steps, listed, strict=True), start=1):
        wanted = sorted(map(list, scene.step_groups(one)))
        if sorted(step.groups) != wanted:
            return _broken(number, f"step {number}: the groups are not those of its instruction")
    return checked.trace


def _check_program(
    model: RequestModel, program: Program, scene: Scene, groups: IntArray
) -> tuple[Trace, str]:
    hierarchy, steps = scene.hierarchy, []
    listed = tuple(parse_instruction(step.instruction) for step in model.steps)
    if listed != program.instructions:
        text = "the instructions of the steps are not those of the program"
        return _broken(0, text), "devices"
    for number, step in enumerate(model.steps, start=1):
        local = _local_groups(step.groups, groups)
        if local is None:
            text = f"step {number}: the groups do not repeat over the axes' reduction groups"
            return _broken(number, text), "devices"
        steps.append(Step(listed[number - 1].collective, local))
    if hierarchy.size > semantics.MAX_DEVICES:
        quotient = check_program(demand_of(model.kind), hierarchy, program)
        trace, how = quotient.trace, quotient.how
    else:
        trace, how = semantics.run(demand_of(model.kind), hierarchy.size, steps), "devices"
    return (trace if trace.violation else _expected(model, program, scene, groups) or trace), how


def _expected(
    model: RequestModel, program: Program, scene: Scene, groups: IntArray
) -> Trace | None:
    """Broken if some step's groups, in any order, are not those that its instruction forms."""
    hierarchy = scene.hierarchy
    for number, (step, instruction) in enumerate(
        zip(model.steps, program.instructions, strict=True), start=1
    ):
        wanted = lower(groups, hierarchy.factors, hierarchy.grouping(instruction))
        if sorted(step.groups) != sorted(wanted.tolist()):
            return _broken(number, f"step {number}: the groups are not those of its instruction")
    return None


def _broken(step: int, text: str) -> Trace:
    return Trace(_violation(step, text))


def _violation(step: int, text: str) -> Violation:
    return Violation(ViolationKind.GROUP_SHAPE, step, (), None, None, text)


def _fixed_violation(model: RequestModel, scene: Scene, groups: IntArray) -> Violation | None:
    """A request with one fixed step runs on the reduction groups themselves."""
    kind, alone = model.kind.value, scene.hierarchy.size == 1
    if model.program is not None:
        return _violation(0, f"a request {kind} has one fixed step and no program")
    if alone and not model.steps:
        return None
    if alone or model.kind.has_programs or len(model.steps) != 1:
        wanted = "no step" if alone else "a program" if model.kind.has_programs else "one step"
        return _violation(0, f"a request {kind} over {scene.hierarchy.size} devices needs {wanted}")
    if model.steps[0].instruction != kind or model.steps[0].groups != groups.tolist():
        return _violation(1, f"step 1: is not {kind} on the groups of the axes")
    return None


def _local_groups(step: Sequence[Sequence[int]], groups: IntArray) -> IntArray | None:
    """Positions in the reduction groups; None unless every reduction group has the same ones."""
    if not step or not step[0] or len({len(row) for row in step}) != 1:
        return None
    listed = np.array(step, dtype=np.int64)
    count, members = groups.shape
    if listed.max() >= groups.size or len(listed) % count:
        return None
    where = np.empty((2, groups.size), dtype=np.int64)
    where[0, groups] = np.arange(count)[:, None]
    where[1, groups] = np.arange(members)
    owner, position = where[0, listed], where[1, listed]
    order = np.argsort(owner[:, 0], kind="stable")
    local = position[order].reshape(count, -1, listed.shape[1])
    within = (owner == owner[:, :1]).all()
    even = (np.bincount(owner[:, 0], minlength=count) == len(listed) // count).all()
    return local[0] if within and even and (local == local[0]).all() else None


def _in_devices(trace: Trace, groups: IntArray) -> Trace:
    """The violation in device ids, for the first reduction group."""
    first, broken = groups[0].tolist(), trace.violation
    if broken is None or max(broken.group, default=0) >= len(first):
        return trace
    text = broken.message + _counted_in(broken, first)
    rank = None if broken.rank is None else first[broken.rank]
    members = tuple(first[position] for position in broken.group)
    return replace(trace, violation=replace(broken, group=members, rank=rank, message=text))


def _counted_in(broken: Violation, group: list[int]) -> str:
    """Says in which group a message counts the members that it names, where that is not plain."""
    if broken.rank is None or group == list(range(len(group))):
        return ""
    shown = ", ".join(map(str, group[:4])) + (", .." if len(group) > 4 else "")
    return f" (counted in a reduction group such as {shown})"
