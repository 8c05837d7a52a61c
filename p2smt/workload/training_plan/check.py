"""Checks a plan and its ``training`` block: strategy, requests, and every number predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from p2smt.cluster.device import Device
from p2smt.cluster.topology import Topology
from p2smt.parallelism.request import Request
from p2smt.plans.check.plan import Note, PlanReport, check_plan
from p2smt.plans.file_model import AnyPlan, PlanModel
from p2smt.plans.problem import plan_problem
from p2smt.plans.training.file_model import TrainingBlock
from p2smt.workload.efficiency import Efficiency
from p2smt.workload.iteration import predict_with
from p2smt.workload.prediction import Prediction
from p2smt.workload.run import TrainingRun
from p2smt.workload.timing.request_columns import axis_requests
from p2smt.workload.training_plan.block import efficiency_in, misstated, run_of
from p2smt.workload.training_plan.problem import named_seconds, plan_axes, plan_requests
from p2smt.workload.validity import violations

KIND = "training"
"""The kind of notes on the block, and what it is called among what was checked."""


def check_training_plan(plan: AnyPlan, source: str) -> PlanReport:
    """Check a plan as :func:`~p2smt.plans.check.plan.check_plan` does, and its block if it has one.

    The prediction is computed anew from the times that the cost model gives the plan's programs.

    Raises:
        InputError: sizes that do not fit, unknown axes or levels, programs that do not parse, or
            sizes that make no model or strategy.
    """
    report = check_plan(plan, source)
    if not isinstance(plan, PlanModel) or plan.training is None:
        return report
    problem, _ = plan_problem(plan, source)
    found = _notes(plan, plan.training, problem.topology, problem.requests, report, source)
    notes = tuple(Note(KIND, text) for text in found)
    return replace(report, notes=report.notes + notes, besides=(KIND,))


def _notes(
    plan: PlanModel,
    block: TrainingBlock,
    topology: Topology,
    requests: Sequence[Request],
    report: PlanReport,
    source: str,
) -> Iterator[str]:
    run, constants = run_of(block, source), efficiency_in(block, source)
    if topology.device is None:
        yield "the topology does not say what its devices can do, so nothing can be predicted"
        return
    broken = violations(run.model, run.batch, run.strategy, topology.devices)
    yield from (str(one.error()) for one in broken)
    if broken:
        return
    yield from _wrong_requests(plan, run, constants, requests)
    if report.violations:
        return
    prediction = _again(run, topology.device, constants, report.seconds)
    if prediction is None:
        return
    yield from misstated(block.prediction, prediction)
    if prediction.memory.total > block.memory_bytes:
        yield f"it needs {prediction.memory.total} bytes a device of {block.memory_bytes}"


def _wrong_requests(
    plan: PlanModel, run: TrainingRun, constants: Efficiency, requests: Sequence[Request]
) -> Iterator[str]:
    """Whether axes and requests of the plan are those of the strategy."""
    axes = [(axis.name, axis.size) for axis in plan.axes]
    wanted = [(axis.name, axis.size) for axis in plan_axes(run.strategy)]
    if axes != wanted:
        yield f"axes are {_sizes(axes)}, and those of the strategy {_sizes(wanted)}"
        return
    asked = axis_requests(run.model, run.batch, run.strategy, constants.framework)
    expected = plan_requests(run.strategy, asked)
    if len(requests) != len(expected):
        yield f"there are {len(requests)} requests, and the strategy has {len(expected)}"
        return
    for number, (said, found) in enumerate(zip(requests, expected, strict=True), start=1):
        if said != found:
            yield f"request {number} is {said}, and that of the strategy {found}"


def _again(
    run: TrainingRun, device: Device, constants: Efficiency, seconds: Sequence[float]
) -> Prediction | None:
    """The prediction with the plan's programs; None: its requests are not the strategy's."""
    asked = axis_requests(run.model, run.batch, run.strategy, constants.framework)
    if len(plan_requests(run.strategy, asked)) != len(seconds):
        return None
    return predict_with(run, device, constants, named_seconds(run.strategy, asked, seconds))


def _sizes(axes: Sequence[tuple[str, int]]) -> str:
    return ",".join(f"{name}={size}" for name, size in axes)
