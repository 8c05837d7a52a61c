"""What `plan -o` and `solve -o` write beside the plan itself: the part ``answer`` of its file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from p2smt.api.planning import Planned
from p2smt.cluster.allocation import unstated_levels
from p2smt.cluster.topology import Topology
from p2smt.parallelism.placement import FloatArray
from p2smt.plans.file_model import MAX_POINTS, LinkLoadBlock, PointBlock
from p2smt.plans.solution import Alternative, RequestAnswer, Solution
from p2smt.report.training.run_words import proof_words, time_parts
from p2smt.result import Status
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.pipeline import work
from p2smt.training.prediction import RunEstimate
from p2smt.training.search.question import PlanQuestion
from p2smt.training.strategy import Strategy, strategy_text

if TYPE_CHECKING:
    from p2smt.api.host_plan import PlannedOnHosts
    from p2smt.search.comparison import Comparison

REST = "bubble and communication"
"""The part of a strategy's time that is named so where its placement is not kept."""


def planned_answer(found: Planned, command: str) -> dict[str, Any]:
    """What a search for strategies says of the one to run."""
    answer, run = found.answer, found.recommended
    near = answer.near
    data = _common(command, answer.status, answer.proof(), answer.gap)
    data |= {"outside": list(_outside(found)), "reserve_bytes": answer.question.free_bytes}
    if near is not None:
        members = [(one.strategy, one.iteration_s) for one in near.members[:MAX_POINTS]]
        points = _points(answer.question, members, found.listed)
        data |= _near(near.within, points)
    if run is None:
        return data
    solutions = run.plan.solutions
    best = [one.best for one in solutions if one.best is not None]
    return data | _rates(run.estimate) | _links(run.estimate.topology, best)


def _outside(found: Planned) -> Iterable[str]:
    """How the one to run lies outside of what was measured."""
    run = found.recommended
    if run is None or run.number == 1:
        return found.answer.outside
    return (one.text for one in run.known.missing)


def hosted_answer(found: PlannedOnHosts, command: str) -> dict[str, Any]:
    """What a search on named hosts says of the one to run."""
    answer, run = found.answer, found.recommended
    data = _common(command, answer.status, proof_words(answer), answer.gap)
    data |= {"reserve_bytes": answer.question.free_bytes}
    if answer.near is not None:
        points = [one.estimate(answer.question) for one in answer.near.members[:MAX_POINTS]]
        data |= _near(answer.near.within, map(_point, points))
    if run is None:
        return data
    data["outside"] = [one.text for one in run.known.missing]
    where, solution = run.estimate.on_hosts, run.plan.solution
    best = [] if solution is None or solution.best is None else [solution.best]
    idle = {} if where is None else {"idle": list(where.idle)}
    return data | _rates(run.estimate) | _links(run.estimate.topology, best) | idle


def solved_answer(solution: Solution, beside: Comparison | None, command: str) -> dict[str, Any]:
    """What `solve` says of its best placement."""
    best = solution.best
    bound, least = solution.bound_s, None if best is None else best.objective_s
    gap = max(0.0, 1 - bound / least) if least and bound > 0 else None
    data = _common(command, solution.status, "", gap)
    if solution.allocation is not None:
        data["idle"] = list(solution.allocation.idle)
    if unstated_levels(solution.problem.topology):
        return data  # no time is told
    if best is not None:
        data |= _links(solution.problem.topology, [best])
    others = {} if solution.default is None else {"default": solution.default.objective_s}
    if beside is not None:
        others = {one.name: one.figures.order.objective_s for one in beside.orders}
    data["beside"] = [{"name": name, "seconds": s} for name, s in others.items()]
    return data


def _common(command: str, status: Status, proof: str, gap: float | None) -> dict[str, Any]:
    gap = 0.0 if status is Status.OPTIMAL else gap
    return {"command": command or None, "status": status.value, "proof": proof, "gap": gap}


def _rates(found: RunEstimate) -> dict[str, Any]:
    return {"tokens_per_s": found.tokens_per_s, "mfu": found.prediction.utilization}


# Points: strategies near the best.


def _near(within: float, points: Iterable[PointBlock]) -> dict[str, Any]:
    return {"within": within, "points": [one.model_dump() for one in points]}


def _points(
    question: PlanQuestion,
    members: Sequence[tuple[Strategy, float]],
    listed: Sequence[RunEstimate],
) -> list[PointBlock]:
    """Of those whose placement is kept all parts; of the others what no placement changes."""
    known = {one.run.strategy: _point(one) for one in listed}
    others = [one for one in members if one[0] not in known]
    found = known | dict(zip((one for one, _ in others), _unplaced(question, others), strict=True))
    return [found[strategy].model_copy(update={"iteration_s": s}) for strategy, s in members]


def _point(found: RunEstimate) -> PointBlock:
    return PointBlock(
        strategy=strategy_text(found.run.strategy),
        iteration_s=found.iteration_s,
        memory_bytes=found.prediction.memory.total,
        parts={one.name: one.seconds for one in time_parts(found.prediction) if one.seconds},
    )


def _unplaced(
    question: PlanQuestion, members: Sequence[tuple[Strategy, float]]
) -> Iterator[PointBlock]:
    """Compute is that of the stage which computes longest, and the rest whatever remains."""
    if not members:
        return
    columns = StrategyColumns.of([strategy for strategy, _ in members])
    device = question.topology.known_device
    done = work(question.model, question.batch, columns, device, question.efficiency)
    computes: FloatArray = done.micro_batches * np.max(done.compute_s, axis=1)
    figures = zip(computes.tolist(), done.optimizer_s.tolist(), done.memory_bytes, strict=True)
    for (strategy, whole_s), (compute_s, optimizer_s, memory) in zip(members, figures, strict=True):
        rest_s = max(0.0, whole_s - compute_s - optimizer_s)
        yield PointBlock(
            strategy=strategy_text(strategy),
            iteration_s=whole_s,
            memory_bytes=int(memory),
            parts={"compute": compute_s, REST: rest_s, "optimizer": optimizer_s},
        )


# Loads of links.


def _links(topology: Topology, found: Iterable[Alternative]) -> dict[str, Any]:
    """The load of each level's busiest link, in an iteration."""
    busy: dict[int, dict[str, float]] = defaultdict(dict)
    for best in found:
        for answer in best.requests:
            for level, seconds in _busy(answer).items():
                said = busy[level]
                said[answer.label] = said.get(answer.label, 0.0) + seconds
    loads = (_link(topology, level, busy[level]) for level in range(len(topology.levels)))
    return {"links": [one.model_dump() for one in loads]}


def _busy(answer: RequestAnswer) -> Mapping[int, float]:
    """By level, how long all executions of a request occupy its busiest link."""
    found: dict[int, float] = defaultdict(float)
    for step in answer.steps:
        for level, seconds in enumerate(step.level_wire_s):
            if seconds > 0:
                found[level] += seconds * answer.chunks * answer.request.times
    return found


def _link(topology: Topology, level: int, requests: Mapping[str, float]) -> LinkLoadBlock:
    name = topology.levels[level].name
    return LinkLoadBlock(level=name, busy_s=sum(requests.values()), requests=dict(requests))
