"""From a redistribution's plan file to what it states: types, frame, steps, and times of today."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from p2smt.arrays.array_type import ArrayType
from p2smt.arrays.ends import Ends, Splits, ends_of
from p2smt.arrays.memory import MemoryLimit
from p2smt.arrays.mesh import Mesh
from p2smt.arrays.state import ArrayState
from p2smt.arrays.steps import KINDS, ArrayStep, StepKind
from p2smt.arrays.text import parse_layout
from p2smt.cluster.file_model import build_topology
from p2smt.cluster.nodes.blocking import check_stated
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.alpha_beta import step_model
from p2smt.cost.loads.footprint_explicit import explicit_send
from p2smt.cost.redistribution.prices import StepPrices
from p2smt.cost.step_time import StepTime
from p2smt.errors import InputError
from p2smt.plans.problem import located
from p2smt.plans.redistribution.file_model import RedistributionModel, StateModel
from p2smt.plans.redistribution.plan import PlannedStep, RedistributionPlan
from p2smt.result import SearchLimits, SolveStats


@dataclass(frozen=True, slots=True)
class StatedRedistribution:
    """What a file states; ``sources[i]`` of step i, if that is a permute.  Nothing is checked yet
    but that the types exist, that the digits are cuts of the mesh, and that devices do."""

    topology: Topology
    source: ArrayType
    target: ArrayType
    ends: Ends
    steps: tuple[ArrayStep, ...]
    sources: tuple[tuple[int, ...], ...]
    memory: MemoryLimit


def stated(model: RedistributionModel, source: str) -> StatedRedistribution:
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
        ends = _ends(model, first, last)
        steps = _steps(model, ends)
        for number, step in enumerate(model.steps, 1):
            _check_sources(step.sources, number, ends.frame.devices, step.kind is StepKind.PERMUTE)
    memory = MemoryLimit(model.memory.limit_bytes, model.memory.of_steps, model.memory.keep_source)
    sources = tuple(tuple(step.sources) for step in model.steps)
    return StatedRedistribution(topology, first, last, ends, steps, sources, memory)


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


def _ends(model: RedistributionModel, first: ArrayType, last: ArrayType) -> Ends:
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


def first_broken(stated: StatedRedistribution) -> tuple[int, InputError] | None:
    """The first step, from 1, that is none by its own rule, and which rule that is."""
    for number, step in enumerate(stated.steps, 1):
        try:
            step.check(stated.ends.frame)
        except InputError as error:
            return number, error
    return None


def planned_steps(stated: StatedRedistribution) -> tuple[PlannedStep, ...]:
    """The steps with the times of today; of permutes those of the stated sources."""
    prices = StepPrices(stated.topology, stated.ends.frame)
    return tuple(
        PlannedStep(step, _time(stated, prices, step, sources), sources)
        for step, sources in zip(stated.steps, stated.sources, strict=True)
    )


def _time(
    stated: StatedRedistribution, prices: StepPrices, step: ArrayStep, sources: tuple[int, ...]
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


def with_times(model: RedistributionModel, found: StatedRedistribution) -> RedistributionPlan:
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
