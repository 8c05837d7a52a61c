"""The story of a placement with its programs: a plan file of `solve`."""

from __future__ import annotations

from p2smt.cluster.file_model import build_topology
from p2smt.plans.file_model import AnyPlan, PlanModel, RequestModel
from p2smt.report.page.cluster_map import View, cluster_section, whole_cluster
from p2smt.report.page.link_section import link_section, loads_of
from p2smt.report.page.reading import Names
from p2smt.report.page.story import Bar, Bars, Figure, Section, Story, Table, clean
from p2smt.report.page.words import format_time3, links_rest
from p2smt.units import format_bytes


def placement_story(plan: AnyPlan, names: Names, source: str, commands: tuple[str, ...]) -> Story:
    """The story of a plan of `solve`."""
    real = build_topology(plan.topology, source)
    topology = names.of(real)
    shown, ranks = whole_cluster(plan, topology, names)
    axes = tuple((clean(one.name), one.size) for one in plan.axes)
    said = " \u00d7 ".join(f"{name} {size}" for name, size in axes)
    answer = plan.answer if isinstance(plan, PlanModel) else None
    beside = [] if answer is None else [(clean(one.name), one.seconds) for one in answer.beside]
    if names.anonymous:
        beside = [(f"order {at}", seconds) for at, (_, seconds) in enumerate(beside, 1)]
    sections = (
        *_orders(plan, beside),
        *_requests(plan),
        *_in_parts(plan),
        cluster_section(shown, (View(axes, ranks),)),
        *link_section(loads_of(plan), plan.objective_s or 0.0, "an iteration's communication"),
    )
    basis = plan.range_basis if isinstance(plan, PlanModel) else None
    lacks = "orders beside it, loads of every level and the command: write it again with `solve -o`"
    return Story(
        title=clean(f"{said} on {topology.name}"),
        verdict=_verdict(plan, beside),
        figures=tuple(_figures(plan, beside)),
        sections=sections,
        rests=tuple(links_rest(topology, None if basis is None else basis.value)),
        sources=names.sources(real),
        commands=names.commands(*commands),
        lacks=(lacks,) if answer is None else (),
        kind="report of a placement",
    )


def _verdict(plan: AnyPlan, beside: list[tuple[str, float]]) -> str:
    if plan.objective_s is None:
        return "The bandwidth of uplinks is not stated, so no time is told."
    takes = f"{format_time3(plan.objective_s)} of communication an iteration"
    if beside and beside[0][1] > plan.objective_s:
        name, seconds = beside[0]
        takes += f", {1 - plan.objective_s / seconds:.0%} less than {_named(name)}"
    return f"{takes}. {_proof(plan)}"


def _proof(plan: AnyPlan) -> str:
    if plan.status.value == "optimal":
        return "Proved: no other placement is faster."
    if plan.bound_s and plan.objective_s:
        left = 1 - plan.bound_s / plan.objective_s
        return f"Not proved the fastest: others may take up to {left:.0%} less."
    return "Not proved the fastest: nothing bounds other orders of ranks."


def _named(name: str) -> str:
    return {"default": "the default layout", "listed": "the hosts as listed"}.get(name, name)


def _figures(plan: AnyPlan, beside: list[tuple[str, float]]) -> list[Figure]:
    if plan.objective_s is None:
        return []
    own = plan.objective_s
    bound = f"proved bound {format_time3(plan.bound_s)}" if plan.bound_s else ""
    found = [Figure(format_time3(own), "communication of an iteration", bound)]
    if beside and beside[0][1] > 0:
        name, seconds = beside[0]
        saved = Figure(
            f"{1 - own / seconds:.0%}",
            f"saved against {_named(name)}",
            f"it takes {format_time3(seconds)}",
        )
        found.insert(0, saved)
    return [*found, Figure(format_bytes(plan.peak_bytes), "of a device, at most, in one request")]


def _orders(plan: AnyPlan, beside: list[tuple[str, float]]) -> tuple[Section, ...]:
    if not beside or not plan.objective_s:
        return ()
    own = plan.objective_s
    others = tuple(
        Bar(name, seconds, f"{format_time3(seconds)}, {seconds / own - 1:+.0%}")
        for name, seconds in beside
    )
    bars = Bars(
        "communication of an iteration", (Bar("best", own, format_time3(own), True), *others)
    )
    rows = tuple((one.name, one.text) for one in bars.bars)
    slower = sum(one.value > own * (1 + 1e-9) for one in others)
    lead = f"{slower} of {len(others)} usual orders of ranks take longer than this one."
    return (Section("Against other orders", lead, (bars,), (Table(("order", ">time"), rows),)),)


def _requests(plan: AnyPlan) -> tuple[Section, ...]:
    if plan.objective_s is None:
        return ()
    bars, rows = [], []
    for one in plan.requests:
        whole = one.times * (one.seconds or 0.0)
        limits = list(dict.fromkeys(step.bottleneck for step in one.steps if step.bottleneck))
        by = f", limited by {clean(' and '.join(limits))}" if limits else ""
        bars.append(Bar(_name(one), whole, f"{format_time3(whole)}{by}"))
        single = format_time3(one.single_collective_s or 0.0)
        program = clean(one.program or "one step", 200)
        row = (_name(one), f"{one.times:,}", format_time3(one.seconds or 0.0), single, program)
        rows.append(row)
    longest = max(bars, key=lambda one: one.value, default=None)
    share = 0.0 if longest is None or not plan.objective_s else longest.value / plan.objective_s
    name = "" if longest is None else longest.name
    lead = f"{name} takes {share:.0%} of the time."
    heads = ("request", ">times", ">one execution", ">as one collective", "program")
    picture = Bars("time of an iteration", tuple(bars))
    return (Section("What is sent", lead, (picture,), (Table(heads, tuple(rows)),)),)


def _in_parts(plan: AnyPlan) -> tuple[Section, ...]:
    """The splits of a plan: what each part takes, and what no split is below."""
    splits = (plan.splits if isinstance(plan, PlanModel) else None) or ()
    found = []
    for split in splits:
        request = plan.requests[split.request]
        lead = f"{_name(request)}: no split that was found is faster than its program."
        if split.parts:
            took, own = format_time3(split.seconds), format_time3(request.seconds or 0.0)
            lead = f"{_name(request)} takes {took} in parts at once, {own} by one program."
        rows = tuple(
            (
                part.share,
                format_time3(part.request.seconds or 0.0),
                clean(part.request.program or "", 200),
            )
            for part in split.parts
        )
        if split.least_s:
            which = "No other" if rows else "No"
            lead += f" {which} split gains more than {split.seconds / split.least_s - 1:.1%}."
        tables = (Table(("part", ">time", "program"), rows),) * bool(rows)
        found.append(Section("In parts at once", lead, (), tables))
    return tuple(found)


def _name(one: RequestModel) -> str:
    return clean(f"{one.kind_name} {'+'.join(one.axes)} {format_bytes(one.bytes)}")
