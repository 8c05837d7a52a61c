"""What `estimate` tells a person; the tables of one strategy are those of `plan`, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from p2smt.parallelism.placement import ParallelismAxis, Placement
from p2smt.report.costs.request_table import RANGE, range_cell
from p2smt.report.order_tables import host_cells
from p2smt.report.tables import table
from p2smt.report.training.run_words import (
    attention_lines,
    batch_words,
    cluster_words,
    efficiency_lines,
    model_words,
    overlap_lines,
    stack_lines,
    teraflops,
    time_parts,
)
from p2smt.training.iteration import EstimateRange, estimate_range
from p2smt.training.memory_verdict import MemoryVerdict
from p2smt.training.prediction import RunEstimate
from p2smt.training.strategy import AXES, EXPERT_AXES, strategy_text
from p2smt.units import format_bytes, format_gigabytes, format_time


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
