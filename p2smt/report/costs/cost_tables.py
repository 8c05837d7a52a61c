"""What `cost` prints: programs on a placement, plans, and the same as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from p2smt.cluster.topology import NO_LIBRARY, Topology
from p2smt.cost.accuracy import PriceRange
from p2smt.cost.regime import regime
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem
from p2smt.plans.file_model import AnyPlan, OldPlanModel, RequestModel
from p2smt.plans.ranges import RequestRange, range_of, range_of_answer, request_ranges
from p2smt.plans.sides import plan_sides
from p2smt.plans.solution import TIMED_STEP, Alternative, RequestAnswer, in_chunks, timed_steps
from p2smt.plans.training.file_model import PredictionBlock
from p2smt.plans.untimed import told
from p2smt.report.costs.request_table import (
    RANGE,
    after_comma,
    layout_table,
    peak_line,
    planned,
    planned_range,
    request_table,
    shown_steps,
)
from p2smt.report.outputs.costs import (
    CostBySize,
    CostedPrograms,
    CostedRequest,
    CostedRequests,
    CostedStep,
    CostOfPrograms,
    CostOfRequest,
    CostOfRequests,
    CostOutput,
    CostPlanOutput,
    PlannedRequest,
    ProgramsOfSize,
    RequestOfSize,
    RequestsOfSize,
)
from p2smt.report.outputs.shape import range_data
from p2smt.report.tables import bound_text, gap, table
from p2smt.units import format_time

if TYPE_CHECKING:
    from p2smt.plans.check.check_plan import PlanReport
    from p2smt.plans.given_program import Sweep


# What `cost` tells a person about requests and programs.


def cost_tables(problem: Problem, candidates: Sequence[Alternative]) -> Iterator[RenderableType]:
    """Each request, or each program of the one request, step by step with its times."""
    if len(problem.requests) > 1:
        (found,) = candidates
        ranges = request_ranges(problem, found)
        for answer, within in zip(found.requests, ranges, strict=True):
            yield from (f"{answer.request}", *_answer(answer, problem.topology, within), "")
        what = "total" if problem.objective == "sum" else "largest request"
        text = f"{format_time(found.objective_s)} per iteration ({what})"
        yield text + after_comma(range_of(problem, found))
        return
    for number, found in enumerate(candidates):
        (answer,) = found.requests
        if len(candidates) > 1:
            yield from ("", f"{answer.program}") if number else (f"{answer.program}",)
        yield from _answer(answer, problem.topology, range_of_answer(problem, found))
    if len(candidates) > 1:
        best = min(candidates, key=lambda found: found.objective_s).requests[0]
        yield f"\nfastest: {best.program} ({format_time(best.seconds)})"


def _answer(
    answer: RequestAnswer, topology: Topology, ranges: RequestRange
) -> Iterator[RenderableType]:
    for steps in answer_steps(answer, ranges):
        yield from (steps, "")
    yield "; ".join(answer_parts(answer, topology, ranges.whole))


def answer_steps(answer: RequestAnswer, ranges: RequestRange) -> Iterator[RenderableType]:
    """The table of the steps; none where there is nothing to do."""
    title = "steps" if answer.chunks == 1 else "steps of one chunk"
    rows = [step.cells for step in shown_steps(answer, ranges)]
    if rows:
        known = RANGE if any(row[-1] for row in rows) else ""
        yield table(title, ["instruction", ">time", "algorithm", "bottleneck", known], rows)


def answer_parts(
    answer: RequestAnswer, topology: Topology, within: PriceRange | None
) -> Iterator[str]:
    """The time with its range; then what it is compared with, decided by, checked on."""
    seconds, bound = answer.seconds, answer.physical_bound_s
    yield format_time(seconds) + in_chunks(answer.chunks) + after_comma(within)
    if answer.request.times > 1:
        yield f"{answer.request.times} times {format_time(answer.total_s)}"
    if answer.program is not None:
        yield f"single collective {format_time(answer.single_s)}"
        least = answer.bound_s
        yield f"algorithm bound {format_time(least)} (gap {gap(seconds, least)})"
        yield f"link-level bound {format_time(bound)} (gap {gap(seconds, bound)})"
    decides = regime(topology, answer.steps, answer.chunks)
    if decides is not None:
        yield f"decided by {decides}"
    whole = answer.program is None and not answer.request.kind.has_programs
    yield answer.checked if whole else f"checked on {answer.checked}"
    yield library_words(topology)


def library_words(topology: Topology) -> str:
    """Whose algorithms are priced."""
    return f"library {topology.library_name or NO_LIBRARY}"


# The cost of requests and programs as plain data for ``--json``.


def cost_data(problem: Problem, candidates: Sequence[Alternative]) -> CostOutput:
    """Of one request with one program its own fields, with several a list ``programs`` of those;
    of several requests a list ``requests``, and the objective."""
    match found := _costed(problem, candidates):
        case CostedRequest():
            return CostOfRequest(**vars(found))
        case CostedPrograms():
            return CostOfPrograms(**vars(found))
        case CostedRequests():
            return CostOfRequests(**vars(found))


def _costed(
    problem: Problem, candidates: Sequence[Alternative]
) -> CostedRequest | CostedPrograms | CostedRequests:
    if len(problem.requests) > 1:
        (found,) = candidates
        ranges = zip(found.requests, request_ranges(problem, found), strict=True)
        requests = [request_data(answer, problem.topology, within) for answer, within in ranges]
        whole = range_data(range_of(problem, found))
        return CostedRequests(objective_s=found.objective_s, requests=requests, **whole)
    programs = [
        request_data(found.requests[0], problem.topology, range_of_answer(problem, found))
        for found in candidates
    ]
    return programs[0] if len(programs) == 1 else CostedPrograms(programs=programs)


def sweep_data(sweep: Sweep) -> CostBySize:
    """Per size: its bytes, and the fields that the command gives for it alone."""
    pairs = zip(sweep.sizes, sweep.by_size, strict=True)
    found: list[Any] = [_of_size(size, _costed(sweep.problem, at)) for size, at in pairs]
    return CostBySize(sizes=found)


def _of_size(
    size: int, found: CostedRequest | CostedPrograms | CostedRequests
) -> RequestOfSize | ProgramsOfSize | RequestsOfSize:
    match found:
        case CostedRequest():
            return RequestOfSize(**vars(found))
        case CostedPrograms():
            return ProgramsOfSize(bytes=size, **vars(found))
        case CostedRequests():
            return RequestsOfSize(bytes=size, **vars(found))


def request_data(answer: RequestAnswer, topology: Topology, ranges: RequestRange) -> CostedRequest:
    """One request: of one execution ``seconds``, per iteration ``total_s``, of one chunk the steps.

    ``program`` is None where there is one fixed step, or nothing to do; ``regime`` is what decides
    its time (:mod:`p2smt.cost.regime`), None where it takes none.
    """
    request = answer.request
    return CostedRequest(
        kind=request.kind.value,
        axes=request.axes,
        bytes=request.payload_bytes,
        times=request.times,
        total_s=answer.total_s,
        program=None if answer.program is None else str(answer.program),
        chunks=answer.chunks,
        seconds=answer.seconds,
        single_collective_s=answer.single_s,
        algorithm_bound_s=answer.bound_s,
        physical_bound_s=answer.physical_bound_s,
        regime=regime(topology, answer.steps, answer.chunks),
        checked=answer.checked,
        steps=[
            CostedStep(**step, **range_data(within))
            for step, within in zip(timed_steps(answer), ranges.steps, strict=True)
        ],
        **range_data(ranges.whole),
    )


# What `cost` tells a person about a plan file.


def plan_tables(plan: AnyPlan, report: PlanReport) -> Iterator[RenderableType]:
    """Time per iteration, placement, and the requests step by step, as `solve` shows them.

    Where nobody stated the bandwidth of uplinks, the placement alone.
    """
    if not report.unstated:
        yield from plan_headline(plan)
        yield ""
    levels = [level.name for level in plan.topology.levels]
    sizes = [(axis.name, axis.size) for axis in plan.axes]
    order = RankList(tuple(plan.ranks), tuple(axis.size for axis in plan.axes))
    yield layout_table(sizes, levels, plan.matrix, order.text())
    for side in plan_sides(plan, "plan")[1:]:
        yield ""
        rows = [(axis.name, axis.size) for axis in side.plan.axes]
        yield layout_table(rows, levels, side.plan.matrix, title=f"placement of {side.name}")
    if not report.unstated:
        yield ""
        yield request_table(map(planned, plan.requests, report.regimes))


def plan_headline(plan: AnyPlan) -> Iterator[str]:
    """Its time, that of a training it is of, the bound, and the memory."""
    what = "total" if plan.objective == "sum" else "largest request"
    objective_s = told(plan.objective_s)
    training = None if isinstance(plan, OldPlanModel) else plan.training
    of = " of communication" if training else ""
    whole = after_comma(_planned_whole(plan))
    yield f"{format_time(objective_s)}{of} per iteration ({what}){whole}"
    if training:
        yield _iteration(training.prediction)
    yield bound_text("link-level", told(plan.physical_bound_s), objective_s)
    yield peak_line(plan.peak_bytes)


def _iteration(said: PredictionBlock) -> str:
    """What the training takes with it: requests of all stages are in the total, hidden or not."""
    visible_s = sum(one.seconds for one in said.communication)
    shows = f"of which {format_time(visible_s)} is communication that nothing hides"
    return f"iteration of the training: {format_time(said.iteration_s)}, {shows}"


def _planned_whole(plan: AnyPlan) -> PriceRange | None:
    """The range of the objective that a plan's file states; None: it states none."""
    if isinstance(plan, OldPlanModel) or plan.range_s is None or plan.range_basis is None:
        return None
    low_s, high_s = plan.range_s
    return PriceRange(
        told(plan.objective_s), low_s, high_s, plan.range_basis, plan.range_basis_why or ""
    )


def plan_requests(plan: AnyPlan, report: PlanReport) -> list[PlannedRequest]:
    """Its requests with the fields that `cost` gives of any request; without times none."""
    if report.unstated:
        return []
    return list(map(_request, plan.requests, report.regimes, report.checked_on))


def plan_cost_data(plan: AnyPlan | None, report: PlanReport) -> CostPlanOutput:
    """The verdict on a plan, and the requests of a valid one."""
    from p2smt.report.plan_data import report_data

    verdict = vars(report_data(report)) | {"proof": None}
    requests = [] if plan is None else plan_requests(plan, report)
    return CostPlanOutput(**verdict, requests=requests)


def _request(model: RequestModel, decides: str | None, checked: str) -> PlannedRequest:
    return PlannedRequest(
        kind=model.kind.value,
        axes=model.axes,
        bytes=model.bytes,
        times=model.times,
        total_s=model.times * told(model.seconds),
        program=model.program,
        chunks=model.chunks,
        seconds=told(model.seconds),
        single_collective_s=told(model.single_collective_s),
        algorithm_bound_s=told(model.bound_s),
        physical_bound_s=told(model.physical_bound_s),
        regime=decides,
        checked=checked,
        steps=[
            CostedStep(
                **{key: getattr(step, key) for key in TIMED_STEP}, **range_data(planned_range(step))
            )
            for step in model.steps
        ],
        **range_data(planned_range(model)),
    )
