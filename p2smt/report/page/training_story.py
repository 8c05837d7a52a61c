"""The story of a training: a plan file with a ``training`` block, or what `plan` prints as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from p2smt.cluster.file_model import build_topology
from p2smt.cluster.topology import Topology
from p2smt.parallelism.placement import Placement
from p2smt.plans.file_model import PlanModel
from p2smt.plans.sides import expert_axes
from p2smt.plans.training.file_model import ExpertRanksBlock, PlacementBlock, TrainingBlock
from p2smt.report.page.cluster_map import View, cluster_section, whole_cluster
from p2smt.report.page.link_section import link_section, loads_of
from p2smt.report.page.reading import Fields, Names
from p2smt.report.page.story import (
    BarPart,
    Figure,
    PlotPoint,
    Scatter,
    Section,
    Stack,
    Story,
    Table,
    clean,
    sentence,
)
from p2smt.report.page.words import count, format_time3, links_rest, part_words
from p2smt.training.memory_verdict import MemoryVerdict, memory_verdict
from p2smt.training.plan_block import run_of
from p2smt.training.strategy import EXPERT_AXES, strategy_text
from p2smt.units import counted, format_gigabytes, plain

_TOLD = 5e-4
"""The least part of a time that is told as a difference."""
ORDER = ("tp", "cp", "pp", "ep", "dp")
_BILLION = 1e9


@dataclass(frozen=True, slots=True)
class Trained:
    """What is known of a training, from whichever file; None or empty: the file does not say.

    ``strategy``: its text.  ``parts``: of an iteration, and ``hidden`` what runs beside them, in
    seconds by name.  ``memory``: by part.  ``points``: strategy, seconds, bytes, and parts in
    words, of those ``within`` that part of the best.
    """

    what: str
    strategy: str
    iteration_s: float
    parts: Mapping[str, float]
    hidden: Mapping[str, float]
    memory: Mapping[str, float]
    capacity_bytes: float | None
    range_s: tuple[float, float] | None = None
    device_bytes: float | None = None
    tokens_per_s: float | None = None
    mfu: float | None = None
    stage: int | None = None
    status: str = ""
    proof: str = ""
    outside: tuple[str, ...] = ()
    within: float | None = None
    points: tuple[tuple[str, float, float, str], ...] = ()
    rests: tuple[tuple[str, str], ...] = ()
    measured: str = ""
    extra: tuple[Section, ...] = ()
    sources: tuple[str, ...] = ()
    lacks: tuple[str, ...] = field(default=())

    @property
    def memory_bytes(self) -> float:
        """Of the fullest device."""
        return sum(self.memory.values())


def degrees(strategy: str) -> str:
    """The degrees of a strategy's text that are more than 1: ``tp 8 x pp 16 x dp 32``."""
    values = dict(part.partition("=")[::2] for part in strategy.split(","))
    several = [f"{axis} {values[axis]}" for axis in ORDER if values.get(axis, "1") != "1"]
    return clean(" \u00d7 ".join(several) or "one device")


def differences(strategy: str, chosen: str) -> str:
    """How a strategy differs from the chosen one: ``pp 32 (16), mbs 2 (1)``."""
    own, other = (dict(p.partition("=")[::2] for p in one.split(",")) for one in (strategy, chosen))
    keys = [key for key in {**own, **other} if own.get(key) != other.get(key)]
    words = (f"{key} {own.get(key, '-')} (chosen: {other.get(key, '-')})" for key in keys)
    return sentence(", ".join(words) or "the chosen one")


# The story.


def training_story(found: Trained, names: Names, commands: tuple[str, ...]) -> Story:
    """The story of a training."""
    beyond = (("Beyond what was measured", sentence("; ".join(found.outside))),)
    sections = (
        _time_section(found),
        *([] if found.capacity_bytes is None else [_memory_section(found, found.capacity_bytes)]),
        *(one for one in found.extra if one.title.startswith("Who")),
        *([_points_section(found)] if len(found.points) > 1 else []),
        *(one for one in found.extra if not one.title.startswith("Who")),
    )
    return Story(
        title=found.what,
        verdict=_verdict(found),
        figures=tuple(_figures(found)),
        sections=sections,
        warnings=tuple(_warnings(found)) + beyond * bool(found.outside),
        rests=(*found.rests, *_searched(found)),
        sources=found.sources,
        commands=names.commands(*commands),
        lacks=found.lacks,
        kind="report of a training plan",
    )


def _verdict(found: Trained) -> str:
    takes = f"An iteration takes {format_time3(found.iteration_s)} with {degrees(found.strategy)}."
    if not found.status:
        return f"{takes} The file does not say whether anything is faster."
    if found.status != "optimal":
        return f"{takes} Not proved the fastest: {_how_open(found)}."
    fastest = found.points[0] if found.points else None
    if fastest is not None and fastest[0] != found.strategy:
        slower = 1 - fastest[1] / found.iteration_s
        if slower >= _TOLD:
            by = f"takes {slower:.1%} less by the model"
            return f"{takes} The proved fastest {by}; this one is nearer to measured runs."
        return f"{takes} No strategy that was searched takes 0.05% less with single collectives."
    return f"{takes} Proved: no strategy that was searched is faster with single collectives."


def _how_open(found: Trained) -> str:
    return "the search met its limit" if found.proof else "nothing is said of others"


def _warnings(found: Trained) -> Iterator[tuple[str, str]]:
    if (given := found.capacity_bytes) is None:
        return
    if found.memory_bytes > given:
        over = format_gigabytes(found.memory_bytes - given)
        yield "Does not fit", f"a device lacks {over}"
    elif memory_verdict(int(found.memory_bytes), int(given)) is MemoryVerdict.TIGHT:
        yield "Tight", "runs that came this near to the memory of a device have failed"


def _figures(found: Trained) -> Iterator[Figure]:
    within = ""
    if found.range_s is not None:
        low, high = map(format_time3, found.range_s)
        within = f"{low} to {high} in four runs of five"
    yield Figure(format_time3(found.iteration_s), "time of an iteration", within)
    if found.tokens_per_s is not None:
        used = "" if found.mfu is None else f"{found.mfu:.0%} of peak FLOP/s (MFU)"
        yield Figure(count(found.tokens_per_s), "tokens a second, all devices", used)
    given = found.capacity_bytes
    share = "" if given is None else f"{found.memory_bytes / given:.0%} of {_usable(found, given)}"
    yield Figure(format_gigabytes(found.memory_bytes), "memory of the fullest device", share)


def _time_section(found: Trained) -> Section:
    whole = found.iteration_s
    shares = {name: seconds / whole for name, seconds in found.parts.items()}
    sent = sum(share for name, share in shares.items() if name not in _WORK)
    compute, bubble = (shares.get(name, 0.0) for name in ("compute", "bubble"))
    lead = (
        f"{_share(compute)} computes, {_share(sent)} is communication that nothing hides, "
        f"{_share(bubble)} waits in the pipeline."
    )
    end = format_time3(whole)
    stacks = [Stack("on the clock", _timed(found.parts), whole, end)]
    if found.hidden:
        caption = "hidden behind computing, on the same scale: it costs nothing"
        stacks.append(Stack(caption, _timed(found.hidden, hidden=True), whole, end))
    names = dict.fromkeys([*found.parts, *found.hidden])
    rows = tuple(
        (
            clean(name),
            format_time3(found.parts.get(name, 0.0)),
            f"{shares.get(name, 0.0):.1%}",
            format_time3(found.hidden[name]) if name in found.hidden else "",
        )
        for name in names
    )
    table = Table(("part", ">on the clock", ">share", ">hidden"), rows)
    return Section("Where the time goes", lead, tuple(stacks), (table,))


def _usable(found: Trained, capacity_bytes: float) -> str:
    """What a training may take, as `plan` says it; the rest of a device is kept free."""
    usable = " usable" if found.device_bytes else ""
    return f"{format_gigabytes(capacity_bytes)}{usable}"


def _share(part: float) -> str:
    """A part in per cent; a small one is not told as nothing, nor nearly all as all."""
    if 0 < part < 0.005:
        return "under 1%"
    return "Over 99%" if 0.995 <= part < 1 else f"{part:.0%}"


_WORK = ("compute", "bubble", "optimizer")


def _timed(parts: Mapping[str, float], hidden: bool = False) -> tuple[BarPart, ...]:
    return tuple(
        BarPart(clean(name), seconds, format_time3(seconds), hidden)
        for name, seconds in parts.items()
        if seconds > 0
    )


def _memory_section(found: Trained, capacity_bytes: float) -> Section:
    given = found.device_bytes or capacity_bytes
    needed, left = found.memory_bytes, capacity_bytes - found.memory_bytes
    fullest = "" if found.stage is None else f"Stage {found.stage} is the fullest: "
    fits = f"{format_gigabytes(left)} to spare" if left >= 0 else "it does not fit"
    lead = f"{fullest}{format_gigabytes(needed)} of {_usable(found, capacity_bytes)}, {fits}."
    parts = tuple(
        BarPart(clean(name), value, format_gigabytes(value)) for name, value in found.memory.items()
    )
    reserve = given - capacity_bytes
    words = f"{format_gigabytes(reserve)} behind the dashed line are kept free"
    marks = ((capacity_bytes, words),) if reserve > 0 else ()
    scale = max(given, needed)
    rest = f"{format_gigabytes(left)} left" if left > 0.15 * given else ""
    bar = Stack("a device", parts, scale, format_gigabytes(scale), marks, rest)
    rows = [(one.name, one.text, f"{one.value / given:.1%}") for one in parts]
    rows.append(("all", format_gigabytes(needed), f"{needed / given:.1%}"))
    table = Table(("part", ">memory", ">of the device"), tuple(rows))
    return Section("Memory against the device", lead, (bar,), (table,))


def _points_section(found: Trained) -> Section:
    """The strategies near the best; the file's own stands there with its figures in the list."""
    near = "" if found.within is None else f" within {plain(100 * found.within)} % of the fastest"
    listed = list(found.points)
    if all(one[0] != found.strategy for one in listed):
        own = found.strategy, found.iteration_s, found.memory_bytes, part_words(found.parts)
        listed = sorted([*listed, own], key=lambda one: one[1])
    lead = f"{counted(len(listed), 'strategy', 'strategies')}{near} are in the file."
    key = "Filled points on the dashed line: nothing is both faster and smaller."
    own_s, own_bytes = next(one[1:3] for one in listed if one[0] == found.strategy)
    points, rows = [], []
    for strategy, seconds, size, words in listed:
        chosen = strategy == found.strategy
        slower = f"{seconds / own_s - 1:+.1%} time"
        more = f"{(size - own_bytes) / _BILLION:+.1f} GB"
        told = sentence(f"{format_time3(seconds)}, {format_gigabytes(size)}; {words}")
        if not chosen:
            told = f"{slower}, {more}; {differences(strategy, found.strategy)}; {told}"
        points.append(
            PlotPoint(seconds, size / _BILLION, degrees(strategy), sentence(told), chosen=chosen)
        )
        row = (clean(strategy, 160), format_time3(seconds), slower, format_gigabytes(size))
        rows.append((*row, "chosen" if chosen else ""))
    given = (found.capacity_bytes or 0) / _BILLION
    limit = (given, f"{plain(given)} GB may be used") if given else None
    scatter = Scatter("seconds of an iteration", "GB of a device", tuple(points), limit)
    heads = ("strategy", ">iteration", ">against the chosen", ">memory", "")
    return Section("What else would do", lead, (scatter,), (Table(heads, tuple(rows)),), key=key)


def _searched(found: Trained) -> Iterator[tuple[str, str]]:
    if found.measured:
        yield "Measured runs", sentence(found.measured)
    if found.outside:
        yield "Outside what was measured", sentence("; ".join(found.outside))
    if found.proof:
        yield "Searched", sentence(found.proof)


# From a plan file.


def of_plan(plan: PlanModel, block: TrainingBlock, names: Names, source: str) -> Trained:
    """A training in a plan file."""
    real = build_topology(plan.topology, source)
    topology, run = names.of(real), run_of(block, source)
    prediction, answer = block.prediction, plan.answer
    parts = {"compute": prediction.compute_s, "bubble": prediction.bubble_s}
    parts |= {one.axis: one.seconds for one in prediction.communication if one.seconds > 0}
    parts["optimizer"] = prediction.optimizer_s
    memory = prediction.memory.model_dump()
    stage = memory.pop("stage")
    model = clean(run.model.name)
    found = Trained(
        what=f"{model} on {len(plan.ranks):,} {clean(block.efficiency.device)}",
        strategy=strategy_text(run.strategy),
        iteration_s=prediction.iteration_s,
        parts={name: seconds for name, seconds in parts.items() if seconds > 0},
        hidden=_hidden(block),
        memory=memory,
        capacity_bytes=block.memory_bytes,
        device_bytes=None if topology.device is None else topology.device.memory_bytes,
        stage=stage,
        rests=tuple(_rests(block, topology, plan)),
        sources=names.sources(real),
        extra=(_map(plan, block, topology, names), *_links(plan, prediction.iteration_s)),
    )
    tokens = block.batch.sequences * block.batch.tokens
    found = replace(found, tokens_per_s=tokens / prediction.iteration_s)
    if answer is None:
        lacks = "near-optimal strategies, what is proved, loads of every level and the command: "
        return replace(found, lacks=(f"{lacks}write the plan again with `p2smt plan -o`",))
    return replace(
        found,
        mfu=answer.mfu,
        status=answer.status.value,
        proof=answer.proof,
        outside=tuple(answer.outside),
        within=answer.within,
        points=tuple(
            (one.strategy, one.iteration_s, one.memory_bytes, part_words(one.parts))
            for one in answer.points
        ),
    )


def _hidden(block: TrainingBlock) -> dict[str, float]:
    """What hides, by the axis that a request is named after."""
    found: dict[str, float] = {}
    for one in block.prediction.requests:
        if one.hidden_s > 0:
            axis = one.name.partition(" ")[0]
            found[axis] = found.get(axis, 0.0) + one.hidden_s
    return found


def _rests(block: TrainingBlock, topology: Topology, plan: PlanModel) -> Iterator[tuple[str, str]]:
    fitted = block.efficiency
    reached = f"{plain(fitted.fraction)} of the peak of a {clean(fitted.device)}"
    many = f"fitted to {fitted.runs} measured runs, {fitted.error:.1%} left over"
    yield "Fitted", f"{clean(fitted.name)}: {reached}, {many if fitted.runs else 'to no run'}"
    yield from links_rest(topology, None if plan.range_basis is None else plan.range_basis.value)
    yield (
        "Assumed",
        "no other job on the links; every device alike; the slowest stage sets the pace",
    )


def _map(plan: PlanModel, block: TrainingBlock, topology: Topology, names: Names) -> Section:
    axes = tuple((one.name, one.size) for one in plan.axes)
    topology, ranks = whole_cluster(plan, topology, names)
    views = [View(axes, ranks)]
    match block.placement:
        case PlacementBlock(experts=rows):
            placement = Placement(tuple(map(tuple, rows)))
            theirs = tuple(zip(EXPERT_AXES, placement.axis_sizes, strict=True))
            views.append(View(theirs, tuple(placement.rank_tensor().ravel().tolist())))
        case ExpertRanksBlock(expert_ranks=devices):
            theirs = tuple(zip(*expert_axes(block), strict=True))
            views.append(View(theirs, tuple(devices)))
    return cluster_section(topology, views)


def _links(plan: PlanModel, whole_s: float) -> tuple[Section, ...]:
    return link_section(loads_of(plan), whole_s, "an iteration")


# From what `plan` and `estimate` print.


def of_answer(data: Fields) -> Trained | None:
    """A training that was printed; None: there is none, as nothing was found."""
    run = next(
        (data.inside(key) for key in ("recommended", "best") if data.data.get(key) is not None),
        data if "iteration_s" in data.data else None,
    )
    if run is None:
        return None
    model = clean(data.inside("model").words("name"))
    efficiency = data.inside("efficiency")
    given = run.maybe("capacity_bytes")
    memory = {"parameters and more": run.number("memory_bytes")}
    stage = None
    if isinstance(run.data.get("memory"), dict):
        memory = _memory(run)
        stage = int(run.inside("memory").number("stage"))
    free = data.maybe("free_bytes")
    device = clean(efficiency.words("device"))
    map_lacks = "the map of the cluster and the loads of links: "
    return Trained(
        what=f"{model} on {int(data.number('devices')):,} {device}",
        strategy=run.words("strategy"),
        iteration_s=run.number("iteration_s"),
        parts=run.numbers("parts"),
        hidden=run.numbers("hidden") if "hidden" in run.data else {},
        memory=memory,
        capacity_bytes=given,
        range_s=run.ends("range_s"),
        device_bytes=None if free is None or given is None else given + free,
        tokens_per_s=run.maybe("tokens_per_s"),
        mfu=run.maybe("mfu"),
        stage=stage,
        status=data.words("status"),
        proof=data.words("proof"),
        outside=_printed_outside(data, run),
        within=data.maybe("near_optimal_within"),
        points=tuple(_printed_points(data)),
        rests=(("Fitted", f"{clean(efficiency.words('name'))} on {device}"),),
        lacks=(
            *(["how much memory a device has: plan again"] if given is None else []),
            f"{map_lacks}`-o PLAN` writes the file that has them",
        ),
    )


def _printed_outside(data: Fields, run: Fields) -> tuple[str, ...]:
    """How the one to run lies outside of measured runs, where that is said of it."""
    for said, key in ((run, "known"), (data, "recommended_known")):
        if isinstance(said.data.get(key), dict):
            return said.inside(key).texts("outside")
    return data.texts("outside")


def _memory(run: Fields) -> dict[str, float]:
    inside = run.inside("memory")
    return {name: inside.number(name) for name in inside.data if name != "stage"}


def _printed_points(data: Fields) -> Iterator[tuple[str, float, float, str]]:
    for one in data.each("top"):
        if "memory_bytes" in one.data:
            said = one.number("iteration_s"), one.number("memory_bytes")
            yield (one.words("strategy"), *said, part_words(one.numbers("parts")))
