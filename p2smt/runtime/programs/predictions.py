"""What the cost model says of a request before ranks run it, from the text of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from p2smt.cluster.nodes.blocking import unstated_levels
from p2smt.cluster.topology import Topology
from p2smt.cost.pipeline import program_s
from p2smt.cost.rank_list import single_time
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import StepTime
from p2smt.parallelism.rank_list import RankList
from p2smt.plans.rank_scene import RankScene
from p2smt.programs.parts import UnevenSlicesError
from p2smt.programs.program import Program, parse_instruction
from p2smt.runtime.job import JobRequest
from p2smt.runtime.programs.regions import StepError, count, moves_of


def predicted(request: JobRequest, scene: Scene) -> JobRequest:
    """The request with the cost model's times; without, if its steps cannot be carried out, or
    nobody stated the bandwidth of uplinks.

    Raises:
        InputError: a step names a level that there is not.
    """
    program = _program(request, scene)
    if unstated_levels(scene.topology):
        return request
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
    if not request.kind.has_programs:
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
    return Program(tuple(parse_instruction(step.name) for step in request.steps))


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
