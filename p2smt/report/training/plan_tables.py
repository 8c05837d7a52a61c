"""What `plan` tells a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from p2smt.api.planning import Planned, TrainerOptions
from p2smt.plans.solution import RequestAnswer, in_chunks
from p2smt.report.costs.request_table import RANGE, range_cell
from p2smt.report.tables import table
from p2smt.report.training.estimate_tables import strategy_parts
from p2smt.report.training.run_words import (
    batch_words,
    cluster_words,
    efficiency_lines,
    headline,
    model_words,
)
from p2smt.result import Status
from p2smt.training.iteration import estimate_range
from p2smt.training.prediction import RunEstimate
from p2smt.training.search.plan_answer import NearStrategies, PlanAnswer
from p2smt.training.search.question import Prices
from p2smt.training.strategy import key_of, strategy_text
from p2smt.training.training_plan import TrainingPlan
from p2smt.units import counted, format_gigabytes, format_time, plain

_GAINS = 1e-6
"""Relative: programs that save less save nothing."""


def plan_tables(found: Planned) -> RenderableType:
    """The answer with its proof, the best strategies, the one to run in detail, those near it."""
    answer, run = found.answer, found.recommended
    question = answer.question
    head: list[RenderableType] = [
        f"{model_words(question.model)} on {cluster_words(question.topology)}",
        f"batch of {batch_words(question.batch)}",
        *efficiency_lines(question.topology, question.efficiency, question.launcher),
        *space_lines(answer),
        "",
        *interrupted_lines(found),
        headline(answer),
    ]
    if run is None:
        return Group(*head, *nothing_lines(answer))
    plan = run.plan
    return Group(
        *head,
        *bound_lines(answer),
        "",
        best_table(found.top, [len(one.alike) for one in answer.top], question.prices),
        "",
        best_line(found.listed[run.number - 1], plan.estimate, run.number),
        *strategy_parts(plan.estimate),
        "",
        *program_parts(plan),
        *near_lines(answer.near),
        *outside_lines(answer),
        *plan.notes,
        *option_lines(found.options, answer.question.launcher),
    )


def interrupted_lines(found: Planned) -> Iterator[str]:
    """What stands before the answer where the user stopped the search."""
    if found.interrupted:
        best = "no strategy had been found" if found.plan is None else "the best found so far"
        yield f"interrupted: {best}"


def option_lines(options: Sequence[TrainerOptions], launcher: str) -> Iterator[str]:
    """The options of the launcher asked for, else of the first that can run the strategy."""
    able = [one for one in options if not one.lacks]
    shown = next((one for one in able if one.name == launcher), able[0] if able else None)
    for one in options:
        if one.lacks:
            yield f"{one.title} lacks {'; '.join(one.lacks)}"
    if shown is not None:
        yield ""
        other = ", which numbers ranks otherwise: plan with --launcher " + shown.name
        yield f"options of {shown.title}{other * (not shown.placed)}:"
        yield from (f"  {line}" for line in shown.text.splitlines())
        yield from shown.notes


def space_lines(answer: PlanAnswer) -> Iterator[str]:
    """What was searched, and how its strategies were closed."""
    yield "space " + "; ".join(f"{key_of(name)} {values}" for name, values in answer.space)
    counts = answer.counts
    ways = (
        ("too large", counts.too_large),
        (f"not run by {answer.question.launcher or 'the launcher'}", counts.lacking),
        ("without a placement", counts.unplaced),
        ("closed by a bound", counts.bounded),
        ("evaluated", counts.evaluated),
        ("left open", counts.open),
    )
    told = ", ".join(f"{count:,} {way}" for way, count in ways if count)
    every = counted(counts.strategies, "strategy", "strategies")
    yield f"{every}: {told}" if told else "no valid strategies"
    if answer.question.free_bytes:
        question = answer.question
        sizes = (question.capacity_bytes, question.topology.known_device.memory_bytes)
        most, has = map(format_gigabytes, sizes)
        yield f"a run may take {most} of a device's {has}: --memory SIZE takes another limit"


def bound_lines(answer: PlanAnswer) -> Iterator[str]:
    """The bound on every strategy of the space, where the answer is not proved; and why."""
    if answer.status is not Status.OPTIMAL and answer.bound_s > 0:
        yield f"no strategy of the space takes less than {format_time(answer.bound_s)}"
    if answer.reason:
        yield answer.reason


def nothing_lines(answer: PlanAnswer) -> Iterator[str]:
    """Why there is no answer: what is missing, and what would help."""
    short = answer.shortfall
    if short is not None:
        missing = format_gigabytes(short.missing_bytes)
        needed, given = map(format_gigabytes, (short.bytes_needed, short.bytes_given))
        nearest = f"{strategy_text(short.strategy)} comes nearest, and lacks {missing}"
        yield f"nothing fits: {nearest}: it needs {needed} of {given}"
        yield from (f"  what would help: {text}" for text in short.help)
    if answer.reason:
        yield answer.reason


def best_table(top: Sequence[RunEstimate], alike: Sequence[int], prices: Prices) -> RenderableType:
    """The best strategies in order, each on its best placement, ``alike`` others on its line."""
    how = "single collectives" if prices is Prices.COLLECTIVES else "the best programs found"
    rows = [
        [
            str(number),
            strategy_text(one.run.strategy),
            f"+ {others}" if others else "",
            format_time(one.iteration_s),
            f"+{max(0.0, one.iteration_s / top[0].iteration_s - 1):.2%}" if number > 1 else "",
            f"{one.tokens_per_s:,.0f}",
            f"{one.prediction.utilization:.1%}",
            format_gigabytes(one.prediction.memory.total),
            range_cell(estimate_range(one).iteration),
        ]
        for number, (one, others) in enumerate(zip(top, alike, strict=True), start=1)
    ]
    heads = [">#", "strategy", ">alike", ">iteration", ">slower", ">tokens/s", ">MFU", ">memory"]
    heads.append(f"{RANGE} by communication")
    return table(f"best strategies, with {how}", heads, rows)


def best_line(ranked: RunEstimate, with_programs: RunEstimate, number: int = 1) -> str:
    """The strategy to run, and that its time is another than in the table where programs gain."""
    which = "best" if number == 1 else "recommended"
    text = f"{which}: {strategy_text(with_programs.run.strategy)}"
    before_s, now_s = ranked.iteration_s, with_programs.iteration_s
    if now_s >= before_s * (1 - _GAINS):
        return text
    return f"{text}, with programs: {format_time(now_s)} in place of {format_time(before_s)}"


def program_parts(plan: TrainingPlan) -> Iterator[RenderableType]:
    """The programs of the best strategy's requests, and what they gain."""
    if not plan.answers:
        return
    better = [one for one in plan.answers if _gains(one)]
    if not better:
        yield "programs: a single collective is the best found for each request"
        yield ""
        return
    rows = [
        [
            one.request.name,
            f"{one.program}{in_chunks(one.chunks)}",
            format_time(one.seconds),
            format_time(one.single_s),
            one.status.value,
        ]
        for one in better
    ]
    heads = ["request", "program", ">a call", ">one collective", "status"]
    yield table("programs that are faster than one collective", heads, rows)
    saved = plan.collectives_s - plan.estimate.iteration_s
    yield f"they save {format_time(saved)} of {format_time(plan.collectives_s)} an iteration"
    yield ""


def _gains(answer: RequestAnswer) -> bool:
    return answer.program is not None and answer.seconds < answer.single_s * (1 - _GAINS)


def near_lines(near: NearStrategies | None) -> Iterator[str]:
    """How many strategies the model cannot tell from the best, and what they share."""
    if near is None:
        return
    least = "" if near.status.settled else "at least "
    plural = "strategies lie" if near.count != 1 else "strategy lies"
    how_near = f"within {plain(100 * near.within, 6)} % of the best"
    yield f"near-optimal: {least}{near.count:,} {plural} {how_near}"
    if near.distinct < near.count:
        yield f"  {near.distinct:,} but for those that exchange dp, cp and mbs at the same time"
    if near.count > 1:
        shared = ", ".join(f"{key_of(name)} {value}" for name, value in near.common)
        yield f"  all have {shared}" if shared else "  they have nothing in common"
        yield from (
            f"  {key_of(name)} is one of {', '.join(values)}" for name, values in near.ranges
        )
    if near.nearest is not None:
        one = near.nearest
        slower = max(0.0, one.planned.iteration_s / near.members[0].iteration_s - 1)
        yield (
            f"  nearest to what was measured: {strategy_text(one.planned.strategy)} "
            f"(+{slower:.2%}), to {one.run.name}, at a distance of {plain(one.distance, 2)}"
        )


def outside_lines(answer: PlanAnswer) -> Iterator[str]:
    """How the best lies outside everything measured."""
    if answer.outside:
        yield f"outside everything measured: {'; '.join(answer.outside)}"
