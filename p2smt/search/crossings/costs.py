"""Every program of a setting with its symbolic cost; programs of one cost stand together."""

from __future__ import annotations

from p2smt.cost.symbolic.form import CostForm
from p2smt.plans.crossings.certificate import EqualPrograms, LeastSet, SymbolicSetting
from p2smt.plans.crossings.costs import program_form
from p2smt.problems.crossing import SumOfMaxima
from p2smt.programs.program import Program
from p2smt.result import SearchLimits, Status
from p2smt.search.programs import Task, list_programs


def equal_programs(
    setting: SymbolicSetting, limits: SearchLimits
) -> tuple[EqualPrograms, ...] | None:
    """The costs of all valid programs, those of the shortest first; None: the time ran out.

    Raises:
        InputError: factors or ports that do not fit.
    """
    scene = setting.scene
    task = Task(setting.kind, scene.hierarchy, setting.max_length)
    result, _ = list_programs(task, limits)
    if result.status is not Status.COMPLETE:
        return None
    programs = sorted(result.value or (), key=lambda one: (len(one), str(one)))
    found: dict[SumOfMaxima, list[tuple[Program, CostForm]]] = {}
    for program in programs:
        form = program_form(setting, program)
        found.setdefault(setting.cost(form), []).append((program, form))
    return tuple(
        EqualPrograms(tuple(program for program, _ in equal), equal[0][1], cost)
        for cost, equal in found.items()
    )


def lists_every_program(claim: LeastSet, limits: SearchLimits) -> bool | None:
    """Whether a claim is about just the programs that there are; None: the time ran out."""
    found = equal_programs(claim.setting, limits)
    if found is None:
        return None
    listed = {program for one in claim.costs for program in one.programs}
    return listed == {program for one in found for program in one.programs}
