"""The plan file: a placement, a program per request, the groups of every step, and costs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, TypeVar

from p2smt.cluster.allocation import unstated_levels
from p2smt.cluster.file_model import dump_topology
from p2smt.cluster.topology import Topology
from p2smt.collectives.dispatch import Dispatch
from p2smt.cost.accuracy import PriceRange
from p2smt.cost.step_time import StepTime
from p2smt.errors import InputError
from p2smt.files.json_text import read_json
from p2smt.files.validation import validated
from p2smt.parallelism.rank_list import RankList, RankMap
from p2smt.parallelism.request import Problem
from p2smt.plans.file_model import SCHEMA_VERSION, AnyPlan, OldPlanModel, PlanModel
from p2smt.plans.ranges import RequestRange, range_of, request_ranges
from p2smt.plans.rank_scene import RankScene, rank_step_groups
from p2smt.plans.restrictions import restriction_data
from p2smt.plans.solution import (
    Alternative,
    PayloadSplit,
    RequestAnswer,
    Solution,
    rank_hosts,
    search_data,
    timed_step,
)
from p2smt.plans.untimed import without_times
from p2smt.programs.program import basis_names, lower
from p2smt.result import Status

__all__ = ["AnyPlan", "PlanModel", "plan_data", "read_kind", "read_plan"]
M = TypeVar("M")

MAX_PLAN_BYTES = 512 * 2**20
OLD_VERSION = 1
REDISTRIBUTION = "redistribution"
TRANSFER = "transfer"
"""The ``kind`` of plans of :mod:`p2smt.plans.redistribution`, which are another file."""
_OF_PAGES = (".html", ".htm")
_OF_SCHEDULES = (".xml", ".yaml", ".yml")


def plan_data(solution: Solution, alternative: Alternative) -> dict[str, Any]:
    """The plan of an alternative as plain data, valid under :class:`PlanModel`."""
    problem, matrix = solution.problem, alternative.matrix
    status = solution.status if alternative is solution.best else Status.FEASIBLE
    known = not unstated_levels(problem.topology)
    ranges = list(request_ranges(problem, alternative)) if known else []
    data: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "topology": dump_topology(problem.topology),
        "axes": [{"name": axis.name, "size": axis.size} for axis in problem.axes],
        "matrix": matrix and [list(row) for row in matrix],
        "ranks": list(alternative.ranks),
        "restrictions": restriction_data(problem),
        "limits": search_data(solution.stats.solver, solution.limits) | {"top": solution.top},
        "objective": problem.objective,
        "objective_s": alternative.objective_s,
        "bound_s": solution.bound_s,
        "physical_bound_s": solution.physical_bound_s,
        "status": status.value,
        "basis": basis_names(solution.bases),
        "peak_bytes": alternative.peak_bytes,
        "requests": [
            _request_data(problem, alternative.placement, r, ranges[n] if known else None)
            for n, r in enumerate(alternative.requests)
        ],
    }
    data |= _on_hosts(solution, alternative)
    if known and solution.splits is not None and alternative is solution.best:
        data["splits"] = [_split_data(problem, alternative.placement, s) for s in solution.splits]
    if not known:
        untold: dict[str, Any] = without_times(data)
        return untold
    return data | range_data(range_of(problem, alternative) if known else None, "range_basis")


def range_data(within: PriceRange | None, basis: str) -> dict[str, Any]:
    """The range of a time under the name that its basis has; nothing where there is no time."""
    if within is None:
        return {}
    ends, known = [within.low_s, within.high_s], within.basis.value
    return {"range_s": ends, basis: known, f"{basis}_why": within.why}


def _on_hosts(solution: Solution, alternative: Alternative) -> dict[str, Any]:
    """What a plan on named hosts says besides."""
    hosts = rank_hosts(solution.problem.topology, alternative.ranks)
    if hosts is None:
        return {}
    allocation = solution.allocation
    if allocation is None:
        return {"hosts": list(hosts), "with_programs_s": None, "allocation": None}
    return {
        "hosts": list(hosts),
        "with_programs_s": allocation.with_programs_s,
        "allocation": dump_topology(allocation.topology) if allocation.idle else None,
    }


def _step_groups(
    problem: Problem, where: RankMap, answer: RequestAnswer
) -> Iterator[list[list[int]]]:
    """The groups of each step of an answer, by device."""
    request, program = answer.request, answer.program
    if isinstance(where, RankList):
        if program is None:
            groups = rank_step_groups(problem, request, where).tolist()
            yield from (groups for _ in answer.steps)
            return
        scene = RankScene.of(problem, request, where)
        yield from ([list(g) for g in scene.step_groups(i)] for i in program.instructions)
        return
    whole, hierarchy = where.groups(problem.axis_indices(request)), answer.hierarchy
    if program is None:
        yield from (whole.tolist() for _ in answer.steps)
        return
    for instruction in program.instructions:
        yield lower(whole, hierarchy.factors, hierarchy.grouping(instruction)).tolist()


def _request_data(
    problem: Problem, where: RankMap, answer: RequestAnswer, ranges: RequestRange | None
) -> dict[str, Any]:
    fixed = (answer.request.kind.value,) * len(answer.steps)
    texts = map(str, answer.program.instructions if answer.program else fixed)
    groups = _step_groups(problem, where, answer)
    steps = [
        _step_data(problem.topology, *one)
        for one in zip(texts, groups, answer.steps, answer.payloads, strict=True)
    ]
    for step, within in zip(steps, () if ranges is None else ranges.steps, strict=False):
        step |= range_data(within, "basis")
    kind = answer.request.kind
    return {
        "kind": kind.value,
        **({"dispatch": asdict(kind)} if isinstance(kind, Dispatch) else {}),
        "axes": list(answer.request.axes),
        "bytes": answer.request.payload_bytes,
        "times": answer.request.times,
        "program": None if answer.program is None else str(answer.program),
        "chunks": answer.chunks,
        "status": answer.status.value,
        "seconds": answer.seconds,
        "bound_s": answer.bound_s,
        "physical_bound_s": answer.physical_bound_s,
        "single_collective_s": answer.single_s,
        "peak_bytes": answer.peak_bytes,
        "shards": None if answer.shards is None else list(answer.shards),
        "steps": steps,
        **range_data(None if ranges is None else ranges.whole, "basis"),
    }


def _split_data(problem: Problem, where: RankMap, split: PayloadSplit) -> dict[str, Any]:
    names = problem.topology.names if split.prices else ()
    return {
        "request": split.request,
        "seconds": split.seconds,
        "least_s": split.least_s,
        "prices": [
            {"level": name, "price": str(price)}
            for name, price in zip(names, split.prices, strict=True)
        ],
        "parts": [
            {
                "share": str(part.share),
                "starts_s": list(part.starts_s),
                "request": _request_data(problem, where, part.answer, None),
            }
            for part in split.parts
        ],
    }


def _step_data(
    topology: Topology, text: str, groups: list[list[int]], step: StepTime, payload: float
) -> dict[str, Any]:
    where = {"groups": groups, "payload_bytes": payload}
    return {"instruction": text, **where, **timed_step(text, step, topology.names)}


def check_plan_name(path: str) -> None:
    """Whether a file of that name would be read as a plan.

    Raises:
        InputError: it would be read as a schedule, or is that of a page.
    """
    ending = os.path.splitext(path)[1].lower()
    if ending in _OF_PAGES:
        rule = "is not a plan's name: plans are JSON, and files named .html pages"
        remedy = "name it .json; p2smt report PLAN -o PAGE.html then makes the page"
        raise InputError(f"output {path[:200]!r}", rule, remedy)
    if ending in _OF_SCHEDULES:
        rule = f"is not a plan's name: plans are JSON, and files named {ending} schedules"
        raise InputError(f"output {path[:200]!r}", rule, "name it .json")


def read_plan(path: str) -> AnyPlan:
    """The plan in a JSON file, of version 2 or 1.

    Raises:
        InputError: the file cannot be read or is no plan; or a key breaks a rule, which it names.
    """
    given = f"file {path[:200]!r}"
    remedy = "give a file that solve -o or redistribute -o wrote"
    data = read_json(path, given, remedy, MAX_PLAN_BYTES)
    if not isinstance(data, dict) or "schema_version" not in data:
        rule = "is no plan: a plan is a JSON object with a schema_version"
        raise InputError(given, rule, "give a file that solve -o wrote")
    if data.get("kind") == REDISTRIBUTION:
        rule = "is the plan of a redistribution, which this does not take"
        raise InputError(given, rule, "verify, cost and run take it")
    source, version = f"plan {path[:200]!r}", data["schema_version"]
    whole = type(version) is int  # 2.0 and true are equal to whole numbers, and are none
    if whole and version == OLD_VERSION:
        return validated(OldPlanModel, data, source)
    if whole and version == SCHEMA_VERSION:
        return validated(PlanModel, data, source)
    rule = f"only versions {OLD_VERSION} and {SCHEMA_VERSION} are known"
    raise InputError(f"{source} of schema_version {str(version)[:20]}", rule, "solve again")


def read_kind(model: type[M], path: str, kind: str, remedy: str) -> M:
    """The plan of another kind in a JSON file, by the model of its file.

    Raises:
        InputError: the file cannot be read or is no such plan; or a key breaks a rule, which it
            names.
    """
    given = f"file {path[:200]!r}"
    data = read_json(path, given, remedy, MAX_PLAN_BYTES)
    if not isinstance(data, dict) or data.get("kind") != kind:
        raise InputError(given, f"is no plan of a {kind}", remedy)
    return validated(model, data, f"plan {path[:200]!r}")
