"""Checks a redistribution's plan file: rules, meaning, groups, memory, times, bounds.

No number of the file is believed: each is computed again from its types and steps.  What only a
search proves is held to what can be known without one: that its bound does not lie above what it
bounds, that "optimal" means equal, and that the plan is one of those that it is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from p2smt.cluster.allocation import check_stated
from p2smt.cluster.file_model import build_topology
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import step_model
from p2smt.cost.loads.footprint_explicit import explicit_send
from p2smt.cost.step_time import StepTime
from p2smt.errors import InputError
from p2smt.plans.check.check_plan import bound_notes, differ
from p2smt.plans.problem import located
from p2smt.resharding.endpoints import Ends, Splits, ends_of
from p2smt.resharding.plan_file import ArrayStepModel, RedistributionModel, StateModel
from p2smt.resharding.redistribution_plan import PlannedStep, RedistributionPlan
from p2smt.resharding.semantics import check_types
from p2smt.resharding.states import ArrayState
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import KINDS, ArrayStep, MemoryLimit, StepKind, needed_bytes, within
from p2smt.resharding.time_left import level_splits, physical_bound_s
from p2smt.resharding.types import ArrayType, Mesh, parse_layout
from p2smt.result import SearchLimits, SolveStats

CHECKED = ("rules of steps", "meaning", "groups", "memory", "times", "bounds")
"""What is held against the plan, in this order."""
OPTIMALITY = "optimality"


@dataclass(frozen=True, slots=True)
class RedistributionNote:
    """What a plan breaks or misstates.

    ``kind`` is ``rule``, ``meaning``, ``groups``, ``memory``, ``cost`` or ``bound``; ``step``
    counts from 1; ``rank`` and ``chunk`` (dimension and element) say where elements are wrong.
    """

    kind: str
    step: int | None = field(default=None, kw_only=True)
    rank: int | None = field(default=None, kw_only=True)
    chunk: tuple[int, ...] | None = field(default=None, kw_only=True)
    message: str


@dataclass(frozen=True, slots=True)
class RedistributionReport:
    """Verdict on a plan; ``plan`` is its value with times computed anew, where its steps are any.

    ``checked`` was held against it, in the order of :data:`CHECKED`; times mean nothing where
    elements end elsewhere, and are not compared then.
    """

    notes: tuple[RedistributionNote, ...]
    plan: RedistributionPlan | None
    checked: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether no rule is broken and nothing is misstated."""
        return not self.notes


def check_redistribution(model: RedistributionModel, source: str) -> RedistributionReport:
    """Check a plan file.  No search is made, so nothing is said of optimality.

    Raises:
        InputError: names ``source``; types, digits or devices that do not exist.
    """
    found = stated(model, source)
    broken = first_broken(found)
    if broken is not None:
        number, error = broken
        text = f"step {number}: {error.rule}"
        return RedistributionReport(
            (RedistributionNote("rule", text, step=number),), None, CHECKED[:1]
        )
    wrong = tuple(_wrong(found))
    if wrong:
        return RedistributionReport(wrong, None, CHECKED[:2])
    plan = with_times(model, found)
    notes = [*_limits(plan), *_groups(model, found), *_memory(model, plan), *_times(model, plan)]
    return RedistributionReport((*notes, *_bounds(model, plan)), plan, CHECKED)


def _wrong(found: ReadBackRedistribution) -> Iterator[RedistributionNote]:
    """Where elements do not end as the types say."""
    moves = list(zip(found.steps, found.sources, strict=True))
    ends = found.ends
    for wrong in check_types(found.source, found.target, ends.frame, ends.source, moves):
        number = wrong.step or None
        yield RedistributionNote(
            "meaning", wrong.message, step=number, rank=wrong.device, chunk=wrong.chunk
        )


def _limits(plan: RedistributionPlan) -> Iterator[RedistributionNote]:
    """Where the plan is none of those among which it says that it is the best."""
    count, most = len(plan.steps), plan.max_steps
    if most is not None and count > most:
        text = f"max_steps says at most {most}, the plan has {count}"
        yield RedistributionNote("rule", text)
    if plan.levels_only and plan.frame.digits != _ends(plan)[0].frame.digits:
        text = "levels_only says that levels alone cut the axes, the digits are other cuts"
        yield RedistributionNote("rule", text)


def _ends(plan: RedistributionPlan) -> tuple[Ends, ...]:
    """What a search with the plan's cuts starts from."""
    splits = level_splits(plan.topology, plan.source.mesh) if plan.levels_only else None
    return ends_of(plan.source, plan.target, splits)


def _numbered(
    model: RedistributionModel, steps: tuple[ArrayStep, ...]
) -> Iterator[tuple[int, ArrayStepModel, ArrayStep]]:
    for number, (said, step) in enumerate(zip(model.steps, steps, strict=True), 1):
        yield number, said, step


def _groups(
    model: RedistributionModel, found: ReadBackRedistribution
) -> Iterator[RedistributionNote]:
    frame = found.ends.frame
    for number, said, step in _numbered(model, found.steps):
        if said.groups != list(map(list, step.groups(frame))):
            text = f"step {number} groups are not those of the digits that it moves"
            yield RedistributionNote("groups", text, step=number)
        if said.text != step.text(frame):
            text = f"step {number} text says {said.text[:80]!r}, it is {step.text(frame)!r}"
            yield RedistributionNote("groups", text, step=number)


def _memory(model: RedistributionModel, plan: RedistributionPlan) -> Iterator[RedistributionNote]:
    frame = plan.frame
    for number, said, _ in _numbered(model, plan.array_steps):
        needed = needed_bytes(frame, plan.array_steps, number - 1, plan.memory.keep_source)
        if said.step_bytes != needed:
            text = f"step {number} step_bytes says {said.step_bytes}, it needs {needed}"
            yield RedistributionNote("memory", text, step=number)
    for name, stated_bytes, needed in (
        ("peak_bytes", model.peak_bytes, plan.peak_bytes),
        ("peak_step_bytes", model.peak_step_bytes, plan.peak_step_bytes),
    ):
        if stated_bytes != needed:
            text = f"{name} says {stated_bytes}, the plan needs {needed}"
            yield RedistributionNote("memory", text)
    least = max(map(frame.local_bytes, (plan.states[0], plan.states[-1])))
    if not plan.memory.of_steps and plan.memory.limit_bytes != least:
        text = f"limit_bytes says {plan.memory.limit_bytes}, source and destination need {least}"
        yield RedistributionNote("memory", text)
    elif not within(frame, plan.start, plan.array_steps, plan.memory):
        text = f"the plan needs more than the {plan.memory.limit_bytes} bytes of its cap"
        yield RedistributionNote("memory", text)


def _times(model: RedistributionModel, plan: RedistributionPlan) -> Iterator[RedistributionNote]:
    names = plan.topology.names
    for number, said, _ in _numbered(model, plan.array_steps):
        time = plan.steps[number - 1].time
        for text in _step_times(f"step {number}", said, time, names):
            yield RedistributionNote("cost", text, step=number)
    for text in differ("objective_s", model.objective_s, plan.objective_s):
        yield RedistributionNote("cost", text)


def _step_times(
    where: str, said: ArrayStepModel, time: StepTime, names: tuple[str, ...]
) -> Iterator[str]:
    yield from differ(f"{where} seconds", said.seconds, time.seconds)
    yield from differ(f"{where} payload_bytes", said.payload_bytes, time.payload_bytes)
    yield from differ(f"{where} load_bytes", said.load_bytes, time.load_bytes)
    bottleneck = None if time.level is None else names[time.level]
    if (said.algorithm, said.protocol, said.bottleneck) != (
        time.algorithm,
        time.protocol,
        bottleneck,
    ):
        yield f"{where} algorithm, protocol or bottleneck is not that of the cost model"


def _bounds(model: RedistributionModel, plan: RedistributionPlan) -> Iterator[RedistributionNote]:
    texts = list(bound_notes("the plan", model.bound_s, plan.objective_s, model.status))
    links_s = min(physical_bound_s(plan.topology, ends) for ends in _ends(plan))
    found = min(links_s, plan.objective_s)
    texts += differ("physical_bound_s", model.physical_bound_s, found)
    yield from (RedistributionNote("bound", text) for text in texts)


# From a redistribution's plan file to what it states: types, frame, steps, and times of today.


@dataclass(frozen=True, slots=True)
class ReadBackRedistribution:
    """What a file states; ``sources[i]`` of step i, if that is a permute.  Nothing is checked yet
    but that the types exist, that the digits are cuts of the mesh, and that devices do."""

    topology: Topology
    source: ArrayType
    target: ArrayType
    ends: Ends
    steps: tuple[ArrayStep, ...]
    sources: tuple[tuple[int, ...], ...]
    memory: MemoryLimit


def stated(model: RedistributionModel, source: str) -> ReadBackRedistribution:
    """What the file named ``source`` states.

    Raises:
        InputError: types that do not exist or do not fit each other or the topology; digits that
            do not cut the axes; sources that are not one device for each; uplinks of which nobody
            stated the bandwidth.
    """
    topology = build_topology(model.topology, source)
    with located(source):
        check_stated(topology)
        first, last = _types(model)
        _check_devices(topology, first)
        ends = _stated_ends(model, first, last)
        steps = _steps(model, ends)
        for number, step in enumerate(model.steps, 1):
            _check_sources(step.sources, number, ends.frame.devices, step.kind is StepKind.PERMUTE)
    memory = MemoryLimit(model.memory.limit_bytes, model.memory.of_steps, model.memory.keep_source)
    sources = tuple(tuple(step.sources) for step in model.steps)
    return ReadBackRedistribution(topology, first, last, ends, steps, sources, memory)


def _types(model: RedistributionModel) -> tuple[ArrayType, ArrayType]:
    axes = [(axis.name, axis.size) for axis in model.mesh]

    def made(devices: list[int], layout: str) -> ArrayType:
        mesh = Mesh.of(axes, devices)
        shape = tuple(model.shape)
        return ArrayType(mesh, shape, model.dtype, parse_layout(layout, mesh), model.uneven)

    return made(model.devices, model.source), made(model.target_devices, model.target)


def _check_devices(topology: Topology, kind: ArrayType) -> None:
    if set(kind.mesh.devices) != set(range(topology.devices)):
        rule = f"the topology has devices 0 to {topology.devices - 1}"
        raise InputError(f"devices of {kind.mesh.size} positions", rule, "name each of them once")


def _stated_ends(model: RedistributionModel, first: ArrayType, last: ArrayType) -> Ends:
    names = [axis.name for axis in first.mesh.axes]
    found = ends_of(first, last, _splits(model, names))[0]
    said = [(digit.axis, digit.before, digit.size) for digit in model.digits]
    if said != [(names[digit.axis], digit.before, digit.size) for digit in found.frame.digits]:
        rule = "are no cuts of the mesh's axes, most significant first, that both types share"
        raise InputError("digits", rule)
    return found


def _splits(model: RedistributionModel, names: list[str]) -> Splits:
    """Per axis the sizes of its digits; of an axis that they do not make up, the whole of it."""
    found = []
    for name, axis in zip(names, model.mesh, strict=True):
        sizes = tuple(digit.size for digit in model.digits if digit.axis == name)
        found.append(sizes if math.prod(sizes) == axis.size else (axis.size,))
    return tuple(found)


def _steps(model: RedistributionModel, ends: Ends) -> tuple[ArrayStep, ...]:
    state, found = ends.source, []
    for step in model.steps:
        after = array_state(step.after)
        found.append(KINDS[step.kind](state, after))
        state = after
    return tuple(found)


def array_state(model: StateModel) -> ArrayState:
    """A state of a file."""
    return ArrayState(tuple(map(tuple, model.dims)), tuple(model.partial), model.order)


def _check_sources(sources: list[int], number: int, devices: int, permute: bool) -> None:
    given = f"step {number} sources"
    if not permute:
        if sources:
            raise InputError(given, "are of permutes only", "leave the list empty")
    elif len(sources) != devices or max(sources) >= devices:
        raise InputError(given, f"must be one of {devices} devices for each device")


def first_broken(stated: ReadBackRedistribution) -> tuple[int, InputError] | None:
    """The first step, from 1, that is none by its own rule, and which rule that is."""
    for number, step in enumerate(stated.steps, 1):
        try:
            step.check(stated.ends.frame)
        except InputError as error:
            return number, error
    return None


def planned_steps(stated: ReadBackRedistribution) -> tuple[PlannedStep, ...]:
    """The steps with the times of today; of permutes those of the stated sources."""
    prices = StepPrices(stated.topology, stated.ends.frame)
    return tuple(
        PlannedStep(step, _time(stated, prices, step, sources), sources)
        for step, sources in zip(stated.steps, stated.sources, strict=True)
    )


def _time(
    stated: ReadBackRedistribution, prices: StepPrices, step: ArrayStep, sources: tuple[int, ...]
) -> StepTime:
    if step.kind is not StepKind.PERMUTE:
        return prices.step(step)
    sender, taker = np.array(sources, dtype=np.int64), np.arange(len(sources))
    apart = sender != taker
    footprint = explicit_send(stated.topology, sender[apart], taker[apart])
    model = step_model(stated.topology, footprint, RequestKind.SEND)
    return model.time(stated.ends.frame.local_bytes(step.before))


def redistribution_plan(model: RedistributionModel, source: str) -> RedistributionPlan:
    """The plan of a file as a value, with the times of today.

    Raises:
        InputError: as :func:`stated`; or a step breaks its rule.
    """
    found = stated(model, source)
    broken = first_broken(found)
    if broken is not None:
        number, error = broken
        raise InputError(f"{source}: step {number}: {error.given}", error.rule, error.remedy)
    return with_times(model, found)


def with_times(model: RedistributionModel, found: ReadBackRedistribution) -> RedistributionPlan:
    """The plan of steps that keep their rules; what only a search proves is the file's."""
    limits = model.limits
    return RedistributionPlan(
        found.topology,
        found.source,
        found.target,
        found.ends.frame,
        found.ends.source,
        planned_steps(found),
        found.memory,
        model.status,
        model.bound_s,
        model.physical_bound_s,
        model.max_steps,
        model.levels_only,
        SearchLimits(limits.time_limit_s, None, limits.seed, limits.workers),
        SolveStats(limits.solver),
    )
