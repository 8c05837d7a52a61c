"""What `plan` and `estimate` tell a person behind the first screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from p2smt.api.planning import Planned, TrainerOptions
from p2smt.parallelism.placement import ParallelismAxis, Placement
from p2smt.plans.solution import RequestAnswer, in_chunks
from p2smt.report.costs.request_table import RANGE, range_cell
from p2smt.report.order_tables import host_cells
from p2smt.report.tables import table
from p2smt.report.training.run_words import (
    attention_lines,
    batch_words,
    cluster_words,
    efficiency_lines,
    headline,
    model_words,
    overlap_lines,
    stack_lines,
    teraflops,
    time_parts,
)
from p2smt.result import Status
from p2smt.training.iteration import EstimateRange, estimate_range
from p2smt.training.memory_verdict import MemoryVerdict
from p2smt.training.prediction import RunEstimate
from p2smt.training.search.plan_answer import NearStrategies, PlanAnswer
from p2smt.training.search.question import Prices
from p2smt.training.strategy import AXES, EXPERT_AXES, key_of, strategy_text
from p2smt.training.training_plan import TrainingPlan
from p2smt.units import counted, format_bytes, format_gigabytes, format_time, plain

_GAINS = 1e-6
"""Relative: programs that save less save nothing."""


# `plan`.


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


# `estimate`; the tables of one strategy are those of `plan`, too.


def estimate_tables(found: RunEstimate, helps: Sequence[str] = ()) -> RenderableType:
    """A run, its time, memory, requests and placement; ``helps``: what would make it fit."""
    stack = (*stack_lines(found.topology, found.efficiency), *attention_lines(found))
    return Group(
        *_asked(found),
        *efficiency_lines(found.topology, found.efficiency, dtype=found.run.strategy.dtype),
        "",
        *strategy_parts(found, helps, stack),
    )


def _asked(found: RunEstimate) -> tuple[str, ...]:
    """What run it is."""
    run = found.run
    return (
        f"{model_words(run.model)} on {cluster_words(found.topology)}",
        f"batch of {batch_words(run.batch)}",
        f"strategy {strategy_text(run.strategy)}",
    )


def strategy_parts(
    found: RunEstimate, helps: Sequence[str] = (), stack: Sequence[str] = ()
) -> list[RenderableType]:
    """Rates (and of which ``stack``), time by parts, memory by parts, requests and placement of one
    strategy."""
    within = estimate_range(found)
    return [
        rate_line(found),
        *range_lines(within),
        *stack,
        *overlap_lines(found),
        "",
        time_table(found),
        "",
        memory_table(found),
        *memory_lines(found, helps),
        "",
        requests_table(found, within),
        "",
        *_where(found),
    ]


def _where(found: RunEstimate) -> Iterator[RenderableType]:
    """Where ranks lie: the matrices, or host by host."""
    lie = found.on_hosts
    if lie is None:
        yield placement_table(found.placement, found.topology.names)
        yield from expert_table(found)
        return
    pairs = zip(AXES, found.run.strategy.sizes, strict=True)
    yield host_cells(lie.topology, [ParallelismAxis(*one) for one in pairs], lie.ranks.ranks)
    levels = lie.topology.names[lie.topology.node_level + 1 :]
    if lie.inside is not None:
        yield ""
        yield placement_table(Placement(lie.inside), levels, what="inside each node")
    if lie.experts is not None:
        pairs = zip(EXPERT_AXES, found.run.strategy.expert_sizes, strict=True)
        axes = [ParallelismAxis(*one) for one in pairs]
        yield ""
        yield host_cells(lie.topology, axes, lie.experts.ranks, "the same of experts")
    if lie.experts_inside is not None:
        experts, what = Placement(lie.experts_inside), "experts inside each node"
        yield ""
        yield placement_table(experts, levels, EXPERT_AXES, what)


def rate_line(found: RunEstimate) -> str:
    """Time of an iteration, and what comes out of it."""
    said = found.prediction
    return (
        f"iteration {format_time(found.iteration_s)}: {found.tokens_per_s:,.0f} tokens/s, "
        f"{teraflops(said.device_flops_per_s)} per device, MFU {said.utilization:.1%}"
    )


def range_lines(within: EstimateRange) -> Iterator[str]:
    """How long an iteration may take by its communication, and what that rests on."""
    if within.iteration is not None:
        yield f"by its communication {within.iteration.text}"


def time_table(found: RunEstimate) -> RenderableType:
    """Seconds by part, what hides beside them, and the share of the iteration."""
    whole = found.iteration_s
    rows = [
        [
            part.name,
            format_time(part.seconds),
            f"{part.seconds / whole:.1%}",
            format_time(part.hidden_s) if part.hidden_s else "",
        ]
        for part in time_parts(found.prediction)
    ]
    return table("time of an iteration", ["part", ">seconds", ">share", ">hidden"], rows)


def memory_table(found: RunEstimate) -> RenderableType:
    """Bytes by what they hold."""
    memory = found.prediction.memory
    rows = [
        ["parameters", format_gigabytes(memory.parameters)],
        ["gradients", format_gigabytes(memory.gradients)],
        ["optimizer", format_gigabytes(memory.optimizer)],
        ["activations", format_gigabytes(memory.activations)],
        ["all", format_gigabytes(memory.total)],
    ]
    where = f", of stage {memory.stage}" if found.run.strategy.pp > 1 else ""
    return table(f"memory of a device{where}", ["part", ">size"], rows)


def memory_lines(found: RunEstimate, helps: Sequence[str]) -> list[str]:
    """Whether it fits; if not, by how much, and what would help."""
    given, verdict = format_gigabytes(found.capacity_bytes), found.memory_verdict
    if verdict is MemoryVerdict.NOT:
        missing = format_gigabytes(found.missing_bytes)
        return [f"does not fit into {given}: {missing} are missing", *(f"  {one}" for one in helps)]
    left = format_gigabytes(found.capacity_bytes - found.prediction.memory.total)
    if verdict is MemoryVerdict.TIGHT:
        return [f"tight in {given}: {left} are left; with so little, some published runs failed"]
    return [f"fits into {given}: {left} are left"]


def requests_table(found: RunEstimate, within: EstimateRange) -> RenderableType:
    """What a device asks of each axis; times are of an iteration, ``a call`` of one."""
    if not found.prediction.requests:
        return "communication of an iteration: none"
    rows = [
        [
            one.request.name,
            f"{one.request.kind.value} {'+'.join(one.request.axes)}",
            format_bytes(one.request.payload_bytes),
            f"{one.request.calls:,}",
            format_time(one.call_s),
            format_time(one.visible_s),
            format_time(one.hidden_s),
            one.request.cover.value,
            range_cell(within.calls.get(one.request.name)),
        ]
        for one in found.prediction.requests
    ]
    heads = ["request", "kind", ">bytes", ">calls", ">a call", ">visible", ">hidden", "hides under"]
    heads.append(f"{RANGE} of a call")
    return table("communication of an iteration", heads, rows)


def placement_table(
    placement: Placement | None,
    levels: Sequence[str],
    axes: Sequence[str] = AXES,
    what: str = "placement",
) -> RenderableType:
    """Which axis spans which level: a row for each axis, outermost first."""
    if placement is None:
        return f"{what}: ranks in order over {', '.join(axes)}, which no matrix expresses here"
    rows = [
        [axis, *(str(entry) for entry in row)]
        for axis, row in zip(axes, placement.matrix, strict=True)
    ]
    heads = ["axis", *(f">{name}" for name in levels)]
    return table(f"{what}: parts of each axis at each level", heads, rows)


def expert_table(found: RunEstimate) -> list[RenderableType]:
    """The same of a mixture's experts, over the same devices."""
    if found.run.model.experts is None:
        return []
    what = "placement of experts"
    return ["", placement_table(found.experts, found.topology.names, EXPERT_AXES, what)]
