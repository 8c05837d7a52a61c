"""What `redistribute` tells a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from p2smt.report.resharding_data import ComparedPlanner, steps_data
from p2smt.report.resharding_picture import shape_text
from p2smt.report.tables import bound_text, table
from p2smt.resharding.endpoints import orders_left_out
from p2smt.resharding.reachability import RedistributionAnswer
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.types import layout_text, mesh_text
from p2smt.result import Status
from p2smt.units import counted, format_bytes, format_time, plain

_TICK = 1e-9
"""Times that differ by less, as a part of them, are equal."""


def redistribution_tables(
    answer: RedistributionAnswer,
    peers: Sequence[ComparedPlanner] | None = None,
    backward: RedistributionAnswer | None = None,
    *,
    short: bool = False,
) -> RenderableType:
    """The plan with its bounds and memory, its steps, its gradient's way back, its peers.

    ``short``: without columns for which there is no room.
    """
    if answer.plan is None:
        return no_plan_text(answer)
    head = ["interrupted: the best found so far"] * answer.interrupted
    head += headline(answer.plan)
    parts: list[RenderableType] = ["\n".join(head), "", steps_table(answer.plan, short=short)]
    if backward is not None:
        parts += ["", "the gradient's way back, while its source is kept"]
        parts.append(redistribution_tables(backward, short=short))
    if peers is not None:
        parts += ["", peers_table(answer.plan, peers, short=short)]
    return Group(*parts)


def no_plan_text(answer: RedistributionAnswer) -> str:
    """Why there is no plan, and what would give one."""
    most = answer.question.max_steps
    what = "no plan" if most is None else f"no plan of at most {_steps(most)}"
    if answer.status is not Status.INFEASIBLE:
        if answer.orders_left_out and not answer.stats.reason:
            rest = f"{answer.orders_left_out} orders of the axes' primes were not searched"
            return f"{answer.status.value}: {what} was found; {rest}"
        return f"{answer.status.value}: {what} was found: {answer.stats.reason}"
    if answer.least.too_few_steps:
        return f"infeasible: {what} exists, whatever the memory; give more --steps"
    text = f"infeasible: {what} keeps to {_exactly(answer.memory.limit_bytes)}"
    return "\n".join([text, *_least(answer)])


def _least(answer: RedistributionAnswer) -> Iterator[str]:
    """The least caps that a plan meets, as options that ask for them."""
    least, of_steps = answer.least, answer.memory.of_steps
    if not of_steps and least.limit_bytes is not None:
        yield f"the least cap on states that a plan meets: {_exactly(least.limit_bytes)}"
    if least.memory_bytes is not None:
        shown = format_bytes(least.memory_bytes)
        also = "" if shown.endswith(" B") else f" ({shown})"
        yield f"the least memory that a plan meets: --memory {least.memory_bytes}B{also}"
    if least.memory_bytes is None and answer.question.max_steps is not None:
        yield "give more --steps or more --memory"


def headline(plan: RedistributionPlan) -> Iterator[str]:
    """Time, its range, bounds and memory, a line each."""
    seconds = plan.objective_s
    yield f"{plan.status.value}: {format_time(seconds)}, {_proof(plan)}{_left_out(plan)}"
    if (within := plan.within) is not None:
        yield f"range: {within.text}"
    yield (
        f"{bound_text('proved', plan.bound_s, seconds)}, "
        f"{bound_text('link-level', plan.physical_bound_s, seconds)}"
    )
    yield _memory(plan)


def _proof(plan: RedistributionPlan) -> str:
    if plan.status is Status.OPTIMAL:
        return f"proved among {_compared(plan)}"
    return f"not proved: {plan.stats.reason}" if plan.stats.reason else "not proved"


def _left_out(plan: RedistributionPlan) -> str:
    """That not every order of the primes was searched, if so."""
    count = 0 if plan.levels_only else orders_left_out(plan.source, plan.target)
    return f"; {count} orders of the axes' primes were not searched" if count else ""


def _compared(plan: RedistributionPlan) -> str:
    cuts = " with cuts at the levels" if plan.levels_only else ""
    if plan.max_steps is None:
        return f"plans of any length{cuts}"
    return f"plans of at most {_steps(plan.max_steps)}{cuts}"


def _steps(count: int) -> str:
    return counted(count, "step")


def _memory(plan: RedistributionPlan) -> str:
    """The two peaks, and which of them is capped."""
    cap = f" (cap {format_bytes(plan.memory.limit_bytes)})"
    state, step = format_bytes(plan.peak_bytes), format_bytes(plan.peak_step_bytes)
    kept = " beside the source" if plan.memory.keep_source else ""
    of_states, of_steps = ("", cap) if plan.memory.of_steps else (cap, "")
    return (
        f"memory per device: largest state {state}{of_states}, "
        f"input, output and pack buffer of a step{kept} {step}{of_steps}"
    )


def steps_table(plan: RedistributionPlan, *, short: bool = False) -> Group:
    """The types on the way, and the steps between them."""
    frame, mesh = plan.frame, plan.source.mesh
    rows = [["", layout_text(frame.layout(plan.start), mesh), "", "", "", _local(plan, 0), ""]]
    for number, step in enumerate(steps_data(plan), start=1):
        level = step.bottleneck
        worst = "" if level is None else f"{level} {format_bytes(step.load_bytes)}"
        rows.append(
            [
                step.text,
                step.after,
                format_time(step.seconds),
                "" if level is None else f"{step.algorithm} {step.protocol}".strip(),
                worst,
                _local(plan, number),
                format_bytes(step.step_bytes),
            ]
        )
    shape = shape_text(plan.source.shape, frame.shape)
    title = f"{shape} {frame.element.value} on {mesh_text(mesh)}; bytes are those of a device"
    columns = ("step", "type after it", ">time", "how", "bottleneck", ">array", ">in the step")
    least = ("how", "bottleneck", "in the step", "array")
    return table(title, columns, rows, least=least if short else ())


def _local(plan: RedistributionPlan, number: int) -> str:
    return format_bytes(plan.frame.local_bytes(plan.states[number]))


def peers_table(
    plan: RedistributionPlan, peers: Sequence[ComparedPlanner], *, short: bool = False
) -> Group:
    """What other planners do, priced by the same model; the bytes are those that are capped."""
    ours = "; ".join(step.kind.value for step in plan.array_steps)
    of_steps = plan.memory.of_steps
    peak = format_bytes(plan.peak_step_bytes if of_steps else plan.peak_bytes)
    rows = [["this plan", format_time(plan.objective_s), "", peak, ours]]
    rows += [_peer_cells(plan, row, row.seconds) for row in peers if row.seconds is not None]
    silent = [f"{row.name}: {row.note}" for row in peers if row.seconds is None]
    capped = ">largest step" if of_steps else ">largest state"
    columns = ("planner", ">time", ">times this plan's", capped, "steps")
    title = "the same redistribution by other planners, priced alike"
    return Group(table(title, columns, rows, least=("steps",) if short else ()), *silent)


def _peer_cells(plan: RedistributionPlan, row: ComparedPlanner, seconds: float) -> list[str]:
    over = " over the cap" if row.over_cap else ""
    size = row.peak_step_bytes if plan.memory.of_steps else row.peak_bytes
    peak = "" if size is None else format_bytes(size) + over
    ratio = f"{plain(seconds / plan.objective_s)}x" if plan.objective_s > 0 else ""
    steps = "; ".join(step.kind.value for step in row.steps)
    notes = "; ".join(note for note in (_faster(plan, row), row.note) if note)
    told = f"{steps} ({notes})" if notes else steps
    return [row.name, format_time(seconds), ratio, peak, told]


def _faster(plan: RedistributionPlan, row: ComparedPlanner) -> str:
    """What allows this planner's plan, where it is faster than ours."""
    if row.seconds is None or row.seconds >= plan.objective_s * (1 - _TICK):
        return ""
    if not row.over_cap:
        return "faster"
    return f"faster, over the cap: --memory {row.peak_step_bytes}B allows it"


def _exactly(size: int) -> str:
    shown = format_bytes(size)
    return f"{shown} per device" if shown.endswith(" B") else f"{shown} ({size} bytes) per device"
