"""Holds a plan against the restrictions of its problem: its matrix or ranks, and its programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from p2smt.collectives.names import Form
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import chunk_counts
from p2smt.parallelism.placement import AxisRule, FixedEntry, IntArray, Placement
from p2smt.parallelism.rank_list import RankMap, inside_matrix
from p2smt.parallelism.request import Problem
from p2smt.plans.rank_scene import RankScene
from p2smt.plans.restrictions import restriction_text
from p2smt.programs.parts import common_hierarchy
from p2smt.programs.program import Hierarchy, Program, parse_program

if TYPE_CHECKING:
    from p2smt.plans.file_model import RequestModel


def broken_rules(problem: Problem, where: RankMap) -> Iterator[str]:
    """What the placement breaks: rules on axes, fixed entries, and the choice of algorithms."""
    for rule in problem.rules:
        axis, level = problem.axis_names[rule.axis], problem.topology.names[rule.level]
        if isinstance(rule, FixedEntry):
            entry = _entry(problem, where, rule)
            text = _text("fixed-entry", axis=axis, level=level, entry=rule.value)
            if entry is None:
                yield f"{text}: no matrix expresses the ranks"
            elif entry != rule.value:
                yield f"{text}: the matrix has {entry} there"
        elif not _obeys(problem, where, rule):
            text = _text("axis-rule", axis=axis, level=level, within=rule.inside)
            yield f"{text}: some group {'spans several' if rule.inside else 'lies in one'}"
    algorithms = problem.algorithms
    if algorithms is not None and problem.topology != problem.topology.running(algorithms):
        text = _text("algorithms", algorithms=[algorithm.value for algorithm in algorithms])
        yield f"{text}: the topology's library runs others"


def _entry(problem: Problem, where: RankMap, rule: FixedEntry) -> int | None:
    """The entry of the matrix, on named hosts of that inside the nodes; None: there is none."""
    if isinstance(where, Placement):
        return where.matrix[rule.axis][rule.level]
    inner = rule.level - problem.topology.node_level - 1
    if problem.topology.hosts is None or inner < 0:
        return None
    matrix = inside_matrix(where, problem.topology)
    return None if matrix is None else matrix[rule.axis][inner]


def _text(kind: str, **data: object) -> str:
    """A restriction as its plan puts it."""
    return restriction_text({"kind": kind, **data})


def _obeys(problem: Problem, where: RankMap, rule: AxisRule) -> bool:
    """Whether every group along the axis lies in one entity of the level, or every one in several.

    In a matrix all groups are alike: they lie in one if the entries there and further out are 1.
    """
    if isinstance(where, Placement):
        entries = where.matrix[rule.axis][: rule.level + 1]
        return all(entry == 1 for entry in entries) is rule.inside
    spans = _spans(problem, where.groups((rule.axis,)), rule.level)
    return bool((~spans if rule.inside else spans).all())


def _spans(problem: Problem, groups: IntArray, level: int) -> IntArray:
    """Whether each group has members in several entities of a level: a row of truth values."""
    entities = groups // problem.topology.devices_under(level)
    return (entities != entities[:, :1]).any(axis=1)  # type: ignore[no-any-return]


def broken_by_singles(problem: Problem, where: RankMap) -> Iterator[str]:
    """What ranks break with one collective per request, as a rank list has them."""
    yield from broken_rules(problem, where)
    for request in problem.requests:
        groups = where.groups(problem.axis_indices(request))
        if request.kind.has_programs and groups.shape[1] > 1:
            for text in _broken_by_one(problem, groups):
                yield f"{request.name}: {text}"


def broken_by_program(
    problem: Problem, number: int, model: RequestModel, where: RankMap
) -> Iterator[str]:
    """What a valid request breaks: the length, the forms, the steps across levels, the chunks."""
    request = problem.requests[number]
    several = request.kind.has_exchanges and model.program is not None
    if not (request.kind.has_programs or several) or not model.steps:
        return
    axes = problem.axis_indices(request)
    if isinstance(where, Placement):
        scene = Scene.of(problem.topology, where, axes)
        broken = _broken_by_steps(
            problem, scene.hierarchy, parse_program(model.program or "", model.kind)
        )
    elif model.program is not None:
        hierarchy = common_hierarchy(RankScene.of(problem, request, where).cut)
        broken = _broken_by_steps(problem, hierarchy, parse_program(model.program))
    else:
        broken = _broken_by_one(problem, where.groups(axes))
    yield from broken
    pipeline = 1 if request.kind.has_exchanges else problem.pipeline
    if model.chunks not in chunk_counts(pipeline, len(model.steps)):
        yield f"{_text('pipeline', chunks=problem.pipeline)}: it has {model.chunks}"


def _broken_by_steps(problem: Problem, hierarchy: Hierarchy, program: Program) -> Iterator[str]:
    if len(program) > problem.max_length:
        yield f"{_text('max-length', instructions=problem.max_length)}: it has {len(program)}"
    forms = [instruction.form for instruction in hierarchy.canonical(program).instructions]
    for form in sorted(problem.forbidden_forms & set(forms), key=forms.index):
        text = _text("forbidden-form", form=form.value)
        yield f"{text}: step {forms.index(form) + 1} has this form"
    outermost = [hierarchy.grouping(i).outer for i in program.instructions]
    for level, at_most in problem.step_limits:
        crossing = sum(outer < hierarchy.depth_of(level) for outer in outermost)
        if crossing > at_most:
            yield f"{_text('step-limit', level=level, at_most=at_most)}: it has {crossing}"


def _broken_by_one(problem: Problem, groups: IntArray) -> Iterator[str]:
    """As above for the one collective over whole groups, whose form is InsideGroup."""
    if Form.INSIDE_GROUP in problem.forbidden_forms:
        yield f"{_text('forbidden-form', form=Form.INSIDE_GROUP.value)}: its one step has this form"
    for level, at_most in problem.step_limits:
        crosses = _spans(problem, groups, problem.topology.names.index(level)).any()
        if crosses and at_most < 1:
            yield f"{_text('step-limit', level=level, at_most=at_most)}: it has 1"
