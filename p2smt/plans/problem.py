"""The problem that a plan file answers, and where it puts the ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, assert_never

import numpy as np

from p2smt.cluster.allocation import allocated
from p2smt.cluster.file_model import build_topology
from p2smt.cluster.topology import Algorithm
from p2smt.collectives.names import Form, RequestKind
from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, FixedEntry, ParallelismAxis, Placement
from p2smt.parallelism.rank_list import RankList, RankMap
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.file_model import (
    AlgorithmsModel,
    AnyPlan,
    AxisRuleModel,
    FixedEntryModel,
    ForbiddenFormModel,
    MaxLengthModel,
    PipelineModel,
    PlanModel,
    Restriction,
    StepLimitModel,
)
from p2smt.plans.restrictions import restriction_text

_ONCE = ("max-length", "algorithms", "pipeline")


def plan_problem(plan: AnyPlan, source: str) -> tuple[Problem, RankMap]:
    """The problem that was solved, and the plan's matrix or rank list, sizes checked.

    A plan of version 1 has its restrictions in words only: its problem has none but the usual
    length.

    Raises:
        InputError: names ``source``, and what does not fit.
    """
    topology = build_topology(plan.topology, source)
    with located(source):
        axes = tuple(ParallelismAxis(axis.name, axis.size) for axis in plan.axes)
        requests = tuple(one.as_request for one in plan.requests)
    names = [axis.name for axis in axes]
    more: dict[str, Any] = {}
    if isinstance(plan, PlanModel):
        more = restricted(plan.restrictions, names, topology.names, source)
    with located(source):
        problem = Problem(topology, axes, requests, plan.objective, **more)
        return problem, _mapped(plan, problem)


def allocation_problem(plan: AnyPlan, problem: Problem, source: str) -> Problem:
    """The problem on all the hosts that the job got, some of which the plan leaves idle.

    Raises:
        InputError: the plan is not on named hosts, or one of them is not among those.
    """
    if not isinstance(plan, PlanModel) or plan.allocation is None:
        return problem
    hosts = problem.topology.hosts
    if hosts is None or plan.matrix is not None:
        rule = "is for rank lists on named hosts"
        raise InputError(f"{source}: allocation", rule, "drop it")
    found = build_topology(plan.allocation, f"{source}: allocation")
    with located(f"{source}: allocation"):
        allocated(found, hosts.names)
    return replace(problem, topology=found)


def _mapped(plan: AnyPlan, problem: Problem) -> RankMap:
    if plan.matrix is None:
        if math.prod(problem.axis_sizes) != problem.topology.installed:
            rule = f"the topology has {problem.topology.installed}"
            raise InputError(f"axes of {math.prod(problem.axis_sizes)} devices", rule)
        ranks = RankList(tuple(plan.ranks), problem.axis_sizes)
        ranks.check(problem.topology)
        return ranks
    placement = Placement(tuple(tuple(row) for row in plan.matrix))
    placement.check(problem.topology.sizes, problem.axis_sizes)
    return placement


def check_send(problem: Problem, request: Request, where: RankMap, source: str) -> None:
    """What executes plans sends to the next device of a group, whose devices ascend.

    Raises:
        InputError: a rank list has a send go otherwise.
    """
    if request.kind is not RequestKind.SEND or not isinstance(where, RankList):
        return
    if (np.diff(where.lines(problem.axis_indices(request)), axis=1) < 0).any():
        rule = "its ranks do not ascend in the order of devices, which a send here follows"
        raise InputError(f"{source}: {request}", rule, "leave the request out")


@contextmanager
def located(source: str) -> Iterator[None]:
    """Puts the file's name before what is wrong, unless it stands there."""
    try:
        yield
    except InputError as error:
        if error.given.startswith(source):
            raise
        raise type(error)(f"{source}: {error.given}", error.rule, error.remedy) from None


def restricted(
    restrictions: Sequence[Restriction],
    axes: Sequence[str],
    levels: Sequence[str],
    source: str,
) -> dict[str, Any]:
    """What restrictions say, as fields of :class:`Problem`.

    Raises:
        InputError: an axis or level that there is not, a text that does not say what the data
            say, a restriction that can stand once and stands twice, or no length.
    """
    rules: list[AxisRule | FixedEntry] = []
    found: dict[str, Any] = {"rules": rules, "algorithms": None, "pipeline": 1}
    forms: list[Form] = []
    limits: list[tuple[str, int]] = []
    _check_once([one.kind for one in restrictions], source)
    for number, one in enumerate(restrictions):
        where = f"{source}: restrictions[{number}]"
        _check_text(one, where)
        match one:
            case AxisRuleModel():
                rules.append(AxisRule(*_indices(one, axes, levels, where), one.within))
            case FixedEntryModel():
                rules.append(FixedEntry(*_indices(one, axes, levels, where), one.entry))
            case MaxLengthModel():
                found["max_length"] = one.instructions
            case ForbiddenFormModel():
                forms.append(one.form)
            case StepLimitModel():
                limits.append((levels[_index("level", one.level, levels, where)], one.at_most))
            case AlgorithmsModel():
                found["algorithms"] = _algorithms(one.algorithms, where)
            case PipelineModel():
                found["pipeline"] = one.chunks
            case _:
                assert_never(one)
    return {
        **found,
        "rules": tuple(rules),
        "forbidden_forms": frozenset(forms),
        "step_limits": tuple(limits),
    }


def _check_once(kinds: Sequence[str], source: str) -> None:
    for kind in _ONCE:
        if kinds.count(kind) > 1:
            raise InputError(f"{source}: restrictions", f"have {kind} twice", "keep one")
    if "max-length" not in kinds:
        rule = "lack max-length, which every plan has"
        raise InputError(f"{source}: restrictions", rule, "solve again")


def _check_text(one: Restriction, where: str) -> None:
    wanted = restriction_text(one.model_dump(mode="json"))
    if one.text != wanted:
        rule = f"does not say what its data say: {wanted!r}"
        raise InputError(f"{where}.text {one.text[:60]!r}", rule, "correct one of the two")


def _algorithms(named: list[Algorithm], where: str) -> tuple[Algorithm, ...]:
    if len(set(named)) != len(named):
        raise InputError(f"{where}.algorithms", "name one twice", "give each once")
    return tuple(named)


def _indices(
    rule: AxisRuleModel | FixedEntryModel,
    axes: Sequence[str],
    levels: Sequence[str],
    where: str,
) -> tuple[int, int]:
    return _index("axis", rule.axis, axes, where), _index("level", rule.level, levels, where)


def _index(kind: str, name: str, names: Iterable[str], where: str) -> int:
    known = list(names)
    if name not in known:
        rule = f"there is no such {kind}"
        raise InputError(f"{where}.{kind} {name[:40]!r}", rule, f"use one of {', '.join(known)}")
    return known.index(name)
