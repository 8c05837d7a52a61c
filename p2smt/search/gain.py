"""What an answer gains: over the default layout, whether who measures would find it, and which part
of what its programs gain an algorithm of the library would give, if it were named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from p2smt.cluster.error_class import ErrorClass
from p2smt.cluster.topology import Topology
from p2smt.cost.accuracy import (
    Weighed,
    error_of,
    error_over,
    most_in_node,
    outermost_crossed,
    published,
    system_name,
)
from p2smt.cost.requested_algorithms import running
from p2smt.cost.scene import NamedWay, Scene, named_way
from p2smt.cost.step_time import StepTime
from p2smt.parallelism.placement import IntArray, Placement, default_ranks, rank_groups
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import (
    Accuracy,
    Alternative,
    Gain,
    ProgramGain,
    RankOrder,
    RequestAnswer,
    Solution,
    objective,
)
from p2smt.programs.program import Hierarchy, Program
from p2smt.result import SAME
from p2smt.units import format_bytes

PIPELINED = (
    "no table measures a pipelined collective, and frameworks do not pipeline one by themselves"
)
TEXTBOOK = "no library runs here, and nothing measured was compared with the textbook's model"
NOTHING = "nothing takes any time"
CHANGED = "the file has costs of its own, which nothing published was compared with"
PARTS = "the calibration measured whole nodes, which says nothing of the parts that are used"
UNMEASURED = "the calibration has no errors of this library with these algorithms"
RESTRICTED = "published tables are of what the library chooses, and here its algorithms are given"


def with_gain(found: Solution) -> Solution:
    """The solution with what it gains over the default layout, if it has an answer."""
    if found.best is None or found.default is None:
        return found
    return replace(found, gain=gain_of(found.problem, found.best, found.default))


def gain_of(problem: Problem, best: Alternative, default: RankOrder) -> Gain:
    """The gain of an answer over the default layout, with what is known of its accuracy."""
    over = default.objective_s / best.objective_s - 1 if best.objective_s > 0 else 0.0
    return Gain(over, _accuracy(problem, best, default), program_gain(problem, best))


def program_gain(problem: Problem, best: Alternative) -> ProgramGain | None:
    """What programs gain over one collective each; None where no program does."""
    if best.matrix is None:
        return None
    singles_s = objective(problem, tuple(answer.single_s for answer in best.requests))
    if singles_s <= best.objective_s * (1 + SAME):
        return None
    placement = Placement(best.matrix)
    ways = [_named(problem, placement, answer) for answer in best.requests]
    named_s = _with_named(problem, best, ways)
    lowering = tuple(
        (answer.request, way)
        for n, (answer, way) in enumerate(zip(best.requests, ways, strict=True))
        if way is not None and _lowers(problem, best, ways, n)
    )
    return ProgramGain(singles_s, named_s, best.objective_s, lowering)


_Ways = Sequence[NamedWay | None]


def _with_named(problem: Problem, best: Alternative, ways: _Ways) -> float:
    """The objective of one collective each, where these ways are named."""
    every = zip(best.requests, ways, strict=True)
    seconds = (answer.single_s if way is None else way.cheapest.seconds for answer, way in every)
    return objective(problem, tuple(seconds))


def _lowers(problem: Problem, best: Alternative, ways: _Ways, n: int) -> bool:
    """Whether the objective were higher if one of the ways were not named."""
    others = [None if i == n else way for i, way in enumerate(ways)]
    return _with_named(problem, best, others) > _with_named(problem, best, ways)


def single_of(problem: Problem, placement: Placement, request: Request) -> SinglePrice:
    """The single collective of a request on a placement, as ``programs`` compares with it."""
    scene = _scene(problem, placement, request)
    step = scene.fixed_time(request.kind, request.payload_bytes)
    way = named_way(scene, request.kind, request.payload_bytes)
    return SinglePrice(request, step, way)


@dataclass(frozen=True, slots=True)
class SinglePrice:
    """A single collective: its time as the library chooses it, and what could be named instead."""

    request: Request
    step: StepTime
    way: NamedWay | None

    def gain_of(self, program_s: float) -> ProgramGain | None:
        """What a program that takes so long gains; None: nothing."""
        single_s = self.step.seconds
        if single_s <= program_s * (1 + SAME):
            return None
        if self.way is None:
            return ProgramGain(single_s, single_s, program_s)
        named_s = self.way.cheapest.seconds
        return ProgramGain(single_s, named_s, program_s, ((self.request, self.way),))


def _scene(problem: Problem, placement: Placement, request: Request) -> Scene:
    """Where a request runs, by the algorithms that the problem names."""
    topology = running(problem.topology, problem.algorithms)
    return Scene.of(topology, placement, problem.axis_indices(request))


def _named(problem: Problem, placement: Placement, answer: RequestAnswer) -> NamedWay | None:
    """What could be named instead of the program of a request, if it has one of several steps."""
    if answer.program is None or len(answer.program) < 2:
        return None
    scene = _scene(problem, placement, answer.request)
    return named_way(scene, answer.request.kind, answer.request.payload_bytes)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one side is made of, such as a step: seconds per iteration, the outermost level that
    its groups cross, and how many members they have in a node."""

    operation: str
    payload_bytes: int
    seconds: float
    level: int
    local: int


_Parts = Sequence[_Part]


def _accuracy(problem: Problem, best: Alternative, default: RankOrder) -> Accuracy:
    """The larger error of the two that are compared: a gain is a ratio of both."""
    if any(answer.chunks > 1 for answer in best.requests):
        return Accuracy(unknown=PIPELINED)
    sides = (_of_answer(problem, best), _of_default(problem, default))
    found = [_side(problem, side) for side in sides]
    unknown = [one for one in found if one.error is None]
    return unknown[0] if unknown else max(found, key=lambda one: one.error or 0.0)


def _side(problem: Problem, requests: Sequence[_Parts]) -> Accuracy:
    """The error of the parts that decide; not known where that of one of them is not."""
    weighed = []
    for part in _deciding(problem, requests):
        found = _known(problem.topology, part)
        if isinstance(found, str):
            return Accuracy(unknown=found)
        weighed.append(Weighed(part.seconds, found.error, found.basis))
    return Accuracy(*error_over(weighed)) if weighed else Accuracy(unknown=NOTHING)


def _deciding(problem: Problem, requests: Sequence[_Parts]) -> _Parts:
    """What the objective is made of: the parts of every request, or of the largest one."""
    if problem.objective == "max":
        return max(requests, key=lambda parts: sum(part.seconds for part in parts))
    return [part for parts in requests for part in parts]


def _of_answer(problem: Problem, best: Alternative) -> list[_Parts]:
    """Per request the steps of its program, or its single collective."""
    ranks = best.placement.rank_tensor()
    return [
        _steps(problem.topology, answer, answer.program)
        if answer.program is not None
        else _single(problem, ranks, answer.request, answer.seconds)
        for answer in best.requests
    ]


def _of_default(problem: Problem, default: RankOrder) -> list[_Parts]:
    """Per request its single collective on the default layout."""
    ranks = default_ranks(problem.axis_sizes)
    every = zip(problem.requests, default.seconds, strict=True)
    return [_single(problem, ranks, request, seconds) for request, seconds in every]


def _steps(topology: Topology, answer: RequestAnswer, program: Program) -> _Parts:
    """The steps of a program: groups that vary from a depth on cross the level of the next."""
    hierarchy, times, parts = answer.hierarchy, answer.request.times, []
    for instruction, step in zip(program.instructions, answer.steps, strict=True):
        grouping = hierarchy.grouping(instruction)
        crossed = [_level(topology, hierarchy, i) for i in range(grouping.outer, grouping.inner)]
        sizes = zip(crossed, hierarchy.factors[grouping.outer : grouping.inner], strict=True)
        local = prod(size for level, size in sizes if level > topology.node_level)
        what = instruction.collective.value, round(step.payload_bytes)
        parts.append(_Part(*what, times * step.seconds, crossed[0], local))
    return parts


def _level(topology: Topology, hierarchy: Hierarchy, coordinate: int) -> int:
    """The level of the topology that a coordinate of a hierarchy counts."""
    return topology.names.index(hierarchy.name(coordinate + 1))


def _single(problem: Problem, ranks: IntArray, request: Request, seconds: float) -> _Parts:
    """The single collective of a request; nothing where it takes no time."""
    groups = rank_groups(ranks, problem.axis_indices(request))
    level = outermost_crossed(problem.topology, groups)
    if level is None or seconds <= 0:
        return ()
    local = most_in_node(problem.topology, groups)
    what = request.kind.value, request.payload_bytes
    return (_Part(*what, request.times * seconds, level, local),)


def _known(topology: Topology, part: _Part) -> ErrorClass | str:
    """The error of a part, or why it is not known."""
    what = f"{part.operation} of {format_bytes(part.payload_bytes)}"
    if topology.calibrated:
        return _calibrated(topology, part, what)
    if not topology.library:
        return TEXTBOOK
    if topology.fitted:
        return CHANGED
    if topology.restricted or topology.best or topology.overrides:
        return RESTRICTED
    return _published(topology, part, what)


def _calibrated(topology: Topology, part: _Part, what: str) -> ErrorClass | str:
    """The error that the calibrated file has, or what was not measured."""
    if not topology.errors:
        return PARTS if any(level.whole for level in topology.levels) else UNMEASURED
    name = topology.names[part.level]
    mine = [one for level, one in topology.errors if level == name]
    if all(one.operation != part.operation for one in mine):
        return f"the calibration measured no {part.operation} over level {name}"
    found = error_of(mine, part.operation, part.payload_bytes)
    return found or f"the calibration measured no {what} over level {name}"


def _published(topology: Topology, part: _Part, what: str) -> ErrorClass | str:
    """The error that is committed, or what no published table measures."""
    systems, system = (
        published(topology.library_name),
        system_name(topology, part.level, part.local),
    )
    if not systems:
        return f"no published measurement of {topology.library_name}"
    if system not in systems:
        named = system or "links without a fabric"
        return f"no published measurement of this system ({topology.library_name}, {named})"
    if all(one.operation != part.operation for one in systems[system]):
        return f"no published measurement of {part.operation} on this system"
    found = error_of(systems[system], part.operation, part.payload_bytes)
    return found or f"no published measurement of {what} on this system"
