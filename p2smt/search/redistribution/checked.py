"""From the steps that a search found to a plan: every rule, meaning, memory and times again."""

from __future__ import annotations

from p2smt.arrays.ends import Ends
from p2smt.arrays.memory import within
from p2smt.arrays.semantics import check_types
from p2smt.arrays.steps import ArrayStep, StepKind
from p2smt.cost.redistribution.prices import StepPrices
from p2smt.errors import EncodingBug, InputError
from p2smt.plans.check.numbers import PROVED_WITHIN
from p2smt.plans.redistribution.plan import PlannedStep, RedistributionPlan
from p2smt.result import SolveStats, Status
from p2smt.search.redistribution.cuts import Cuts
from p2smt.search.redistribution.path import PathResult
from p2smt.search.redistribution.question import RedistributionQuestion


def checked_plan(
    question: RedistributionQuestion,
    ends: Ends,
    found: PathResult,
    max_steps: int | None,
    physical_bound_s: float,
    stats: SolveStats,
) -> RedistributionPlan:
    """The plan of these steps.

    Raises:
        EncodingBug: a step breaks its rule, they do not lead from source to destination, elements
            end elsewhere or count twice, or the cap is not kept.
    """
    memory = question.memory(ends)
    _check_path(ends, found.steps)
    if not within(ends.frame, ends.source, found.steps, memory):
        raise _bug("the steps exceed the cap", ends, found.steps)
    prices = StepPrices(question.topology, ends.frame)
    steps = tuple(planned(prices, step) for step in found.steps)
    moves = [(one.step, one.sources) for one in steps]
    for wrong in check_types(question.source, question.target, ends.frame, ends.source, moves):
        raise _bug(wrong.message, ends, found.steps)
    seconds = sum(step.time.seconds for step in steps)
    proved = found.status is Status.OPTIMAL and found.bound_s >= seconds * (1 - PROVED_WITHIN)
    return RedistributionPlan(
        question.topology,
        question.source,
        question.target,
        ends.frame,
        ends.source,
        steps,
        memory,
        Status.OPTIMAL if proved else Status.FEASIBLE,
        min(found.bound_s, seconds),
        min(physical_bound_s, seconds),
        max_steps,
        question.cuts is Cuts.LEVELS,
        question.limits,
        stats,
    )


def planned(prices: StepPrices, step: ArrayStep) -> PlannedStep:
    """A step with its time, and a permute with its messages."""
    if step.kind is not StepKind.PERMUTE:
        return PlannedStep(step, prices.step(step))
    source, _ = prices.messages(step.before, step.after)
    return PlannedStep(step, prices.step(step), tuple(int(device) for device in source))


def _check_path(ends: Ends, steps: tuple[ArrayStep, ...]) -> None:
    """Raise EncodingBug unless the steps follow each other by their rules, from end to end."""
    states = [ends.source, *(step.after for step in steps)]
    begun = all(step.before == state for step, state in zip(steps, states, strict=False))
    if not begun or states[-1] != ends.target:
        raise _bug("the steps do not lead from source to destination", ends, steps)
    for step in steps:
        try:
            step.check(ends.frame)
        except InputError as error:
            raise _bug(str(error), ends, steps) from None


def _bug(reason: str, ends: Ends, steps: tuple[ArrayStep, ...]) -> EncodingBug:
    frame = ends.frame
    problem = {"sizes": frame.sizes, "shape": frame.shape, "from": ends.source, "to": ends.target}
    return EncodingBug(reason, problem, [step.text(frame) for step in steps])
