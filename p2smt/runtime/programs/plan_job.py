"""Makes jobs of plan files and of programs, with the times that the cost model predicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from p2smt.cluster.allocation import unstated_levels
from p2smt.cluster.topology import Topology
from p2smt.collectives.dispatch import AnyKind, Dispatch
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.bounds import single_time
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import StepTime, program_s
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray, Placement
from p2smt.parallelism.rank_list import RankList, RankMap
from p2smt.parallelism.request import Problem
from p2smt.plans.file_model import AnyPlan, PlanModel, RequestModel, SplitModel
from p2smt.plans.problem import check_send, located, plan_problem
from p2smt.plans.rank_scene import RankScene
from p2smt.plans.sides import part_bytes, parts_as_plan, plan_sides
from p2smt.programs.parts import UnevenSlicesError
from p2smt.programs.program import Program, lower, parse_instruction
from p2smt.runtime.job import Job, JobRequest, JobStep, ordered
from p2smt.runtime.programs.regions import StepError, count, moves_of


@dataclass(frozen=True, slots=True)
class Changes:
    """What a run takes otherwise than the plan says; None: as it says.

    ``topology`` has the links that predictions are made from.
    """

    payload_bytes: int | None = None
    chunks: int | None = None
    topology: Topology | None = None


def plan_job(plan: AnyPlan, source: str, changes: Changes) -> Job:
    """The job of a plan file: every request, with its groups as the file lists them.

    The parts of a split follow, each as a request of its own, one after the other.  Programs are
    not checked: running them is a check of its own.

    Raises:
        InputError: sizes that do not fit, unknown axes, or instructions that do not parse.
    """
    sides = plan_sides(plan, source)
    jobs = [_side_job(side.plan, source, changes) for side in sides]
    found = dict(
        pair
        for side, job in zip(sides, jobs, strict=True)
        for pair in zip(side.numbers, job.requests, strict=True)
    )
    requests = [found[n] for n in sorted(found)]
    if isinstance(plan, PlanModel):
        for split in plan.splits or ():
            requests += _parts_of_split(plan, split, source, changes)
    return replace(jobs[0], requests=tuple(requests))


def _parts_of_split(
    plan: PlanModel, split: SplitModel, source: str, changes: Changes
) -> Iterator[JobRequest]:
    """The parts of a split, with their shares of the payload, each whole."""
    shares = [Fraction(part.share) for part in split.parts]
    for n, part in enumerate(split.parts):
        size = changes.payload_bytes and part_bytes(changes.payload_bytes, shares)[n]
        alone = parts_as_plan(plan, split.model_copy(update={"parts": [part]}))
        yield from _side_job(alone, source, replace(changes, payload_bytes=size)).requests


def _side_job(plan: AnyPlan, source: str, changes: Changes) -> Job:
    """The job of the requests along the axes of one matrix."""
    problem, where = plan_problem(plan, source)
    if not _by_rank(problem, where):
        for request in problem.requests:
            check_send(problem, request, where, source)
    topology = _links(problem.topology, changes.topology)
    with located(source):
        return _job(plan, replace(problem, topology=topology), where, changes)


def _by_rank(problem: Problem, where: RankMap) -> bool:
    """Whether process r is rank r: on named hosts, where ranks are started; else it is device r."""
    return isinstance(where, RankList) and problem.topology.hosts is not None


def _job(plan: AnyPlan, problem: Problem, where: RankMap, changes: Changes) -> Job:
    """The job with times predicted on the problem's topology."""
    topology = problem.topology
    axes = [problem.axis_indices(request) for request in problem.requests]
    if isinstance(where, RankList) and _by_rank(problem, where):
        return _job_of_ranks(plan, problem, where, changes)
    requests = [
        _plan_request(model, where.groups(along), changes, topology)
        for model, along in zip(plan.requests, axes, strict=True)
    ]
    job = Job(topology.devices, tuple(requests))  # checks the ranks, on which predictions rely
    if isinstance(where, RankList):
        both = zip(job.requests, axes, strict=True)
        timed = [predicted_single(request, topology, where, along) for request, along in both]
        return replace(job, requests=tuple(timed))
    scenes = [Scene.of(topology, where, along) for along in axes]
    return replace(job, requests=tuple(map(predicted, job.requests, scenes)))


def _job_of_ranks(plan: AnyPlan, problem: Problem, ranks: RankList, changes: Changes) -> Job:
    """The job whose process r is rank r, on the device that the list has there."""
    number = {device: rank for rank, device in enumerate(ranks.ranks)}
    found = []
    for model, request in zip(plan.requests, problem.requests, strict=True):
        request = replace(request, payload_bytes=changes.payload_bytes or request.payload_bytes)
        scene = RankScene.of(problem, request, ranks)
        made = _plan_request(
            _renumbered(model, number), _numbers(scene.groups, number), changes, problem.topology
        )
        found.append((made, scene))
    job = Job(len(ranks.ranks), tuple(made for made, _ in found))
    timed = tuple(predicted_on_ranks(made, scene, ranks) for made, scene in found)
    return replace(job, requests=timed)


def _numbers(groups: IntArray, number: Mapping[int, int]) -> IntArray:
    return np.array([[number[device] for device in row] for row in groups.tolist()])


def _renumbered(model: RequestModel, number: Mapping[int, int]) -> RequestModel:
    """A request whose groups hold the numbers of processes instead of devices.

    Raises:
        InputError: a device has no rank.
    """
    steps = []
    for at, step in enumerate(model.steps, start=1):
        lost = [device for group in step.groups for device in group if device not in number]
        if lost:
            rule = f"device {lost[0]} has no rank"
            raise InputError(f"step {at} of {model.kind.value}", rule, "verify the plan")
        groups = [[number[device] for device in group] for group in step.groups]
        steps.append(step.model_copy(update={"groups": groups}))
    return model.model_copy(update={"steps": steps})


def _links(topology: Topology, other: Topology | None) -> Topology:
    if other is None:
        return topology
    if (topology.names, topology.sizes) != (other.names, other.sizes):
        raise InputError(
            f"topology {other.name}",
            f"has levels {_levels(other)}, the plan has {_levels(topology)}",
            "give one of the same levels and sizes",
        )
    if topology.hosts is None or other.hosts == topology.hosts:
        return other
    if other.hosts is not None:
        rule = "names other hosts than the plan, or has other uplinks"
        raise InputError(f"topology {other.name}", rule, "give one of the same hosts")
    return replace(other, hosts=topology.hosts)


def _levels(topology: Topology) -> str:
    return ", ".join(f"{n} {s}" for n, s in zip(topology.names, topology.sizes, strict=True))


def _plan_request(
    model: RequestModel, groups: IntArray, changes: Changes, topology: Topology
) -> JobRequest:
    steps = [
        JobStep(
            s.instruction, _operation(model.kind, model.program, s.instruction), ordered(s.groups)
        )
        for s in model.steps
    ]
    return JobRequest(
        f"{model.kind.value} {'+'.join(model.axes)}",
        model.kind,
        ordered(groups.tolist()),
        tuple(steps),
        changes.payload_bytes or model.bytes,
        model.times,
        (changes.chunks or model.chunks) if len(steps) > 1 else 1,
        None if model.shards is None else tuple(model.shards),
        units=_units(model.kind, topology),
    )


def _units(kind: AnyKind, topology: Topology) -> tuple[int, ...]:
    """Devices under an entity of each level, by which a dispatch goes."""
    levels = range(len(topology.levels)) if isinstance(kind, Dispatch) else ()
    return tuple(topology.devices_under(j) for j in levels)


def _operation(kind: AnyKind, program: str | None, instruction: str) -> Operation | Dispatch:
    """What a step does; without a program it is the one collective, or the one fixed step."""
    if isinstance(kind, Dispatch) or kind is RequestKind.ALL_TO_ALL or kind is RequestKind.SEND:
        return kind
    if program is None:
        return DIRECT[kind]
    return parse_instruction(instruction).reduction


def requests_job(
    problem: Problem, placement: Placement, programs: Sequence[Program | None], chunks: int = 1
) -> Job:
    """The job of a problem's requests on a placement with these programs, in as many chunks.

    A program is None for a single all-to-all, a send, and in groups of one device.
    """
    requests = []
    for request, program in zip(problem.requests, programs, strict=True):
        axes = problem.axis_indices(request)
        scene, groups = Scene.of(problem.topology, placement, axes), placement.groups(axes)
        steps = _steps(request.kind, scene, groups, program)
        made = JobRequest(
            request.name,
            request.kind,
            ordered(groups.tolist()),
            steps,
            request.payload_bytes,
            request.times,
            chunks if len(steps) > 1 else 1,
            units=_units(request.kind, problem.topology),
        )
        requests.append(predicted(made, scene))
    return Job(problem.topology.devices, tuple(requests))


def _steps(
    kind: AnyKind, scene: Scene, groups: IntArray, program: Program | None
) -> tuple[JobStep, ...]:
    hierarchy = scene.hierarchy
    if program is not None:
        return tuple(
            JobStep(
                str(i),
                i.collective,
                ordered(lower(groups, hierarchy.factors, hierarchy.grouping(i)).tolist()),
            )
            for i in program.instructions
        )
    if hierarchy.size == 1:
        return ()
    operation = _operation(kind, None, kind.value)
    return (JobStep(kind.value, operation, ordered(groups.tolist())),)


def program_job(
    topology: Topology,
    placement: Placement,
    axes: Sequence[int],
    kind: RequestKind,
    program: Program,
    payload_bytes: int,
    chunks: int = 1,
    name: str = "",
) -> Job:
    """The job of one program on the groups of some axes (indices) of a placement."""
    scene, groups = Scene.of(topology, placement, axes), placement.groups(axes)
    steps = _steps(kind, scene, groups, program)
    request = JobRequest(
        name or kind.value,
        kind,
        ordered(groups.tolist()),
        steps,
        payload_bytes,
        chunks=chunks if len(steps) > 1 else 1,
    )
    return Job(topology.devices, (predicted(request, scene),))


# What the cost model says of a request before ranks run it, from the text of its steps.


def predicted(request: JobRequest, scene: Scene) -> JobRequest:
    """The request with the cost model's times; without, if its steps cannot be carried out, or
    nobody stated the bandwidth of uplinks.

    Raises:
        InputError: a step names a level that there is not.
    """
    program = _program(request, scene)
    if unstated_levels(scene.topology):
        return request
    if isinstance(request.kind, Dispatch):
        step = scene.fixed_time(request.kind, request.payload_bytes)
        return _timed(request, (step,) * len(request.steps), step.seconds)
    rows = _payload_rows(request, 1 + max(rank for group in request.groups for rank in group))
    if rows is None:
        return request
    single = scene.fixed_time(request.kind, request.payload_bytes)
    if program is None:
        times: tuple[StepTime, ...] = (single,) * len(request.steps)
    else:
        times = scene.program_times(program, rows, request.payload_bytes, request.chunks)
    return _timed(request, times, single.seconds)


def _payload_rows(request: JobRequest, ranks: int) -> list[int] | None:
    """Rows that each step works on; None where a step cannot be carried out."""
    try:
        row_moves = moves_of(request, request.steps, ranks)
    except StepError:
        return None
    return [max(count(move.region) for move in moves) for moves in row_moves.steps]


def _timed(request: JobRequest, times: Sequence[StepTime], single_s: float) -> JobRequest:
    steps = tuple(
        replace(step, predicted_s=time.seconds)
        for step, time in zip(request.steps, times, strict=True)
    )
    total_s = program_s(times, request.chunks)
    return replace(request, steps=steps, predicted_s=total_s, baseline_predicted_s=single_s)


def _program(request: JobRequest, scene: Scene) -> Program | None:
    """The program of a request by the text of its steps, its levels known; None: it has none."""
    several = request.kind.has_exchanges and len(request.steps) > 1
    if not (request.kind.has_programs or several):
        return None
    return scene.hierarchy.canonical(_by_names(request))


def _program_on_ranks(request: JobRequest, scene: RankScene) -> Program | None:
    """The same of a request on a rank list, where the one collective has the name of its kind."""
    if not request.kind.has_programs or scene.size == 1:
        return None
    if [step.name for step in request.steps] == [request.kind.value]:
        return None
    return _by_names(request)


def _by_names(request: JobRequest) -> Program:
    return Program(tuple(parse_instruction(step.name, request.kind) for step in request.steps))


def predicted_single(
    request: JobRequest, topology: Topology, ranks: RankList, axes: Sequence[int]
) -> JobRequest:
    """The request with the cost model's time of its one step on a rank list."""
    kind, payload = request.kind, request.payload_bytes
    seconds = single_time(topology, ranks.rank_tensor(), axes, kind, payload).seconds
    steps = tuple(replace(step, predicted_s=seconds) for step in request.steps)
    total_s = seconds if steps else 0.0
    return replace(request, steps=steps, predicted_s=total_s, baseline_predicted_s=seconds)


def predicted_on_ranks(request: JobRequest, scene: RankScene, ranks: RankList) -> JobRequest:
    """The same of a request that may have a program, and on named hosts.

    Raises:
        InputError: a step names a level that there is not.
    """
    topology, axes = scene.problem.topology, scene.problem.axis_indices(scene.request)
    if unstated_levels(topology):
        return request
    single = predicted_single(request, topology, ranks, axes)
    program, rows = _program_on_ranks(request, scene), _payload_rows(request, len(ranks.ranks))
    if program is None:
        return single
    if rows is None:
        return request
    try:
        times = scene.program_times(program, rows, request.chunks)
    except UnevenSlicesError:
        return request
    return _timed(request, times, single.baseline_predicted_s or 0.0)
