"""How long the busiest link of every level is occupied, as a section."""

from __future__ import annotations

from collections.abc import Mapping

from p2smt.plans.file_model import AnyPlan, PlanModel
from p2smt.report.page.story import Bar, Bars, Section, Table, clean
from p2smt.report.page.words import format_time3
from p2smt.units import format_bytes

Loads = Mapping[str, Mapping[str, float]]
"""Seconds by level, and there by request."""


def loads_of(plan: AnyPlan) -> tuple[Loads, bool]:
    """The loads in a plan file, and whether they are of every level.

    A file without ``answer`` says of each step only which level limits it, and the load there.
    """
    if isinstance(plan, PlanModel) and plan.answer is not None and plan.answer.links:
        return {one.level: one.requests for one in plan.answer.links}, True
    found: dict[str, dict[str, float]] = {level.name: {} for level in plan.topology.levels}
    for request in plan.requests:
        name = f"{request.kind_name} {'+'.join(request.axes)} {format_bytes(request.bytes)}"
        for step in request.steps:
            if step.bottleneck in found and step.seconds is not None:
                said = found[step.bottleneck]
                seconds = step.seconds * request.chunks * request.times
                said[name] = said.get(name, 0.0) + seconds
    return found, False


def link_section(
    loads: tuple[Loads, bool], whole_s: float, whole: str, title: str = "How busy the links are"
) -> tuple[Section, ...]:
    """The section; nothing where nothing is sent."""
    levels, every = loads
    sums = {level: sum(said.values()) for level, said in levels.items()}
    if not any(sums.values()) or whole_s <= 0:
        return ()
    worst = max(sums, key=lambda level: sums[level])
    share = sums[worst] / whole_s
    if every:
        lead = f"The busiest link of level {clean(worst)} is in use for {share:.0%} of {whole}."
        caption = f"each level's busiest link, its time in use out of {whole}"
    else:
        lead = f"Steps that level {clean(worst)} limits take {share:.0%} of {whole}."
        caption = f"time of the steps that each level limits, out of {whole}"
    bars = tuple(
        Bar(
            clean(level),
            seconds,
            f"{format_time3(seconds)}, {seconds / whole_s:.0%}",
            level == worst,
        )
        for level, seconds in sums.items()
    )
    names = dict.fromkeys(name for said in levels.values() for name in said)
    rows = tuple(
        (
            clean(name),
            *(format_time3(said[name]) if name in said else "" for said in levels.values()),
        )
        for name in names
    )
    table = Table(("request", *(f">{clean(level)}" for level in levels)), rows)
    scale = max(whole_s, *sums.values())
    return (Section(title, lead, (Bars(caption, bars, scale),), (table,)),)


def _used(seconds: float | None) -> str:
    return "" if seconds is None else format_time3(seconds)
