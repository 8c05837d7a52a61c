"""What an answer gains: over the default layout, whether who measures would find it, and which part
of what its programs gain an algorithm of the library would give, if it were named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.cost.accuracy import PriceRange, measured_faster
from p2smt.cost.scene import NamedWay, Scene, named_way
from p2smt.cost.step_time import StepTime
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.ranges import members_in_node, priced_step, range_of, range_of_step
from p2smt.plans.solution import (
    Alternative,
    Gain,
    ProgramGain,
    RankOrder,
    RequestAnswer,
    Shown,
    Solution,
    objective,
    shown,
)
from p2smt.result import SAME
from p2smt.search.program_synthesis import scene_of


def with_gain(found: Solution) -> Solution:
    """The solution with what it gains over the default layout, if it has an answer."""
    if found.best is None or found.default is None:
        return found
    return replace(found, gain=gain_of(found.problem, found.best, found.default))


def gain_of(problem: Problem, best: Alternative, default: RankOrder) -> Gain:
    """The gain of an answer over the default layout, with the ranges of both times."""
    over = default.objective_s / best.objective_s - 1 if best.objective_s > 0 else 0.0
    answer = range_of(problem, best)
    return Gain(over, answer, default.within, program_gain(problem, best))


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
    advised = all(advises(scene_of(problem, placement, one), one, way) for one, way in lowering)
    return ProgramGain(singles_s, named_s, best.objective_s, lowering, advised)


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


def advises(scene: Scene, request: Request, way: NamedWay) -> bool:
    """Whether naming a way gains more than the ranges of both times, so that it is worth advising:
    unless tables of both algorithms have it slower."""
    if way.known is False:
        return False
    chosen = _range(scene, request, way.chosen)
    named = _range(replace(scene, topology=scene.topology.cheapest()), request, way.cheapest)
    return shown(named, chosen) is Shown.YES


def _way(scene: Scene, request: Request) -> NamedWay | None:
    """What could be named for a single collective, and what tables of both algorithms say of it."""
    way = named_way(scene, request.kind, request.payload_bytes)
    if way is None:
        return None
    chosen = priced_step(request.kind.value, way.chosen, _local(scene))
    if chosen is None:
        return way
    names = way.cheapest.algorithm, way.chosen.algorithm
    return replace(way, known=measured_faster(scene.topology, chosen, *names))


def _range(scene: Scene, request: Request, step: StepTime) -> PriceRange | None:
    """The range of the single collective of a request."""
    return range_of_step(scene.topology, request.kind.value, step, _local(scene))


def _local(scene: Scene) -> int:
    """How many members of a group are in a node."""
    return members_in_node(scene.topology, scene.hierarchy, 0, scene.hierarchy.depth)


def single_of(problem: Problem, placement: Placement, request: Request) -> SinglePrice:
    """The single collective of a request on a placement, as ``programs`` compares with it."""
    scene = scene_of(problem, placement, request)
    step = scene.fixed_time(request.kind, request.payload_bytes)
    way = _way(scene, request)
    advised = way is not None and advises(scene, request, way)
    return SinglePrice(request, step, way, advised, _range(scene, request, step))


@dataclass(frozen=True, slots=True)
class SinglePrice:
    """A single collective: its time as the library chooses it, the range of that, and what could be
    named instead."""

    request: Request
    step: StepTime
    way: NamedWay | None
    advised: bool = False
    within: PriceRange | None = None

    def gain_of(self, program_s: float) -> ProgramGain | None:
        """What a program that takes so long gains; None: nothing."""
        single_s = self.step.seconds
        if single_s <= program_s * (1 + SAME):
            return None
        if self.way is None:
            return ProgramGain(single_s, single_s, program_s)
        named_s = self.way.cheapest.seconds
        named = ((self.request, self.way),)
        return ProgramGain(single_s, named_s, program_s, named, self.advised)


def _named(problem: Problem, placement: Placement, answer: RequestAnswer) -> NamedWay | None:
    """What could be named instead of the program of a request, if it has one of several steps."""
    if answer.program is None or len(answer.program) < 2:
        return None
    scene = scene_of(problem, placement, answer.request)
    return _way(scene, answer.request)
