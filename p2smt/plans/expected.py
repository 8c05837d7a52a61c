"""What cost model and checker find for a valid request of a plan, to hold its numbers against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.cost.link_bounds import link_bound_s
from p2smt.cost.scene import Scene, step_payloads
from p2smt.cost.step_time import StepTime, program_s
from p2smt.plans.file_model import RequestModel
from p2smt.plans.solution import RequestAnswer, fixed_peak_bytes
from p2smt.programs.program import parse_program
from p2smt.programs.semantics import Trace


@dataclass(frozen=True, slots=True)
class Expected:
    """The numbers of a request: times in seconds, steps and payloads of one of its chunks.

    ``physical_bound_s`` is 0 where none is known (several ways to run, on a rank list).
    ``proved_s`` is the only bound that is known (a single step takes what it takes), unless a
    search may have ``searched`` for programs.
    """

    steps: tuple[StepTime, ...]
    payloads: tuple[float, ...]
    seconds: float
    single_s: float
    physical_bound_s: float
    proved_s: float
    peak_bytes: int
    shards: tuple[int, ...] | None
    searched: bool


def on_scene(model: RequestModel, scene: Scene, trace: Trace) -> Expected:
    """The numbers of a request on the groups of a matrix."""
    steps = _step_times(model, scene, trace)
    seconds = program_s(steps, model.chunks)
    bound = link_bound_s(scene.topology, scene.digits, model.kind, model.bytes)
    payloads: Sequence[float] = [float(model.bytes)] * len(steps)
    size = scene.hierarchy.size
    peak, shards = fixed_peak_bytes(model.kind, size, model.bytes), None
    if model.program is not None:
        payloads = step_payloads(trace.payload_rows, size, model.bytes, model.chunks)
        peak, shards = -(-model.bytes * trace.peak_rows // size), trace.shards
    return Expected(
        steps,
        tuple(payloads),
        seconds,
        scene.fixed_time(model.kind, model.bytes).seconds,
        min(bound, seconds),
        seconds,
        peak,
        shards,
        model.program is not None,
    )


def _step_times(model: RequestModel, scene: Scene, trace: Trace) -> tuple[StepTime, ...]:
    if model.program is not None:
        program = parse_program(model.program, model.kind)
        return scene.program_times(program, trace.payload_rows, model.bytes, model.chunks)
    return (scene.fixed_time(model.kind, model.bytes),) if model.steps else ()


def on_ranks(answer: RequestAnswer) -> Expected:
    """The numbers of a request on a rank list, as :mod:`p2smt.plans.solution` and
    :mod:`p2smt.plans.rank_scene` find them."""
    return Expected(
        answer.steps,
        answer.payloads,
        answer.seconds,
        answer.single_s,
        answer.physical_bound_s,
        answer.bound_s,
        answer.peak_bytes,
        answer.shards,
        searched=False,
    )
