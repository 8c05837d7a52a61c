"""The story of a redistribution: a plan file, or what `redistribute` prints as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from p2smt.cluster.file_model import TopologyModel, build_topology
from p2smt.files.validation import validated
from p2smt.plans.file import REDISTRIBUTION
from p2smt.report.page.cluster_map import View, cluster_section
from p2smt.report.page.reading import Fields, Names
from p2smt.report.page.story import Bar, Bars, Figure, Section, Story, Table, clean, sentence
from p2smt.report.page.words import format_time3, links_rest
from p2smt.resharding.plan_file import RedistributionModel
from p2smt.units import format_bytes


def redistribution_story(data: Mapping[str, Any], path: str, names: Names) -> Story:
    """The story of a redistribution; only plan files say where the devices lie."""
    fields = Fields(data, path[:60])
    if fields.maybe("objective_s") is None:
        status = clean(fields.words("status"))
        return Story(_title(fields), f"No plan: {status}.", (), (), kind=_KIND)
    sections = [_steps(fields), _memory(fields)]
    rests: tuple[tuple[str, str], ...] = ()
    sources: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ("the map of devices: `redistribute -o PLAN` writes it",)
    if data.get("kind") == REDISTRIBUTION:
        plan = validated(RedistributionModel, data, f"plan {path[:200]!r}")
        real = build_topology(validated(TopologyModel, data["topology"], path), path)
        topology = names.of(real)
        axes = tuple((clean(one.name), one.size) for one in plan.mesh)
        sections.append(cluster_section(topology, (View(axes, tuple(plan.devices)),)))
        rests, sources = tuple(links_rest(topology, None)), names.sources(real)
        lacks = ("the command: keep it beside the file",)
    return Story(
        title=_title(fields),
        verdict=_verdict(fields),
        figures=_figures(fields),
        sections=tuple(sections),
        rests=rests,
        sources=sources,
        commands=names.commands(f"p2smt verify {clean(path)}"),
        lacks=lacks,
        kind=_KIND,
    )


_KIND = "report of a redistribution"


def _title(fields: Fields) -> str:
    one, other = (
        fields.words(old) or fields.words(new)
        for old, new in (("source", "from"), ("target", "to"))
    )
    shape = " \u00d7 ".join(f"{size:,}" for size in fields.data.get("shape") or ())
    return clean(f"{shape} {fields.words('dtype')}: {one} to {other}", 120)


def _verdict(fields: Fields) -> str:
    steps, seconds = len(fields.each("steps")), fields.number("objective_s")
    takes = f"{format_time3(seconds)} in {steps} step{'s' * (steps != 1)}."
    if fields.words("status") == "optimal":
        return f"{takes} Proved: no plan that was compared is faster."
    bound = fields.maybe("bound_s") or 0.0
    least = f"none takes less than {format_time3(bound)}" if bound else "nothing bounds others"
    return f"{takes} Not proved the fastest: {least}."


def _figures(fields: Fields) -> tuple[Figure, ...]:
    bound = fields.maybe("physical_bound_s") or 0.0
    note = f"links alone allow no less than {format_time3(bound)}" if bound else ""
    return (
        Figure(format_time3(fields.number("objective_s")), "to move the array", note),
        Figure(format_bytes(fields.number("peak_step_bytes")), "of a device in a step, at most"),
        Figure(str(len(fields.each("steps"))), "steps"),
    )


def _steps(fields: Fields) -> Section:
    bars, rows = [], []
    for number, one in enumerate(fields.each("steps"), 1):
        seconds, level = one.number("seconds"), one.words("bottleneck")
        by = f", limited by {clean(level)}" if level else ""
        name = clean(f"{number}. {one.words('text') or one.words('kind')}")
        bars.append(Bar(name, seconds, f"{format_time3(seconds)}{by}"))
        sizes = (format_bytes(one.number(key)) for key in ("payload_bytes", "load_bytes"))
        rows.append((name, format_time3(seconds), *sizes, clean(one.words("algorithm"))))
    longest = max(bars, key=lambda one: one.value, default=None)
    lead = "Nothing is moved." if longest is None else f"The longest step: {longest.name}."
    heads = ("step", ">time", ">a device's payload", ">over the worst link", "algorithm")
    picture = Bars("time of each step", tuple(bars))
    return Section("What is done", sentence(lead), (picture,), (Table(heads, tuple(rows)),))


def _memory(fields: Fields) -> Section:
    asked = fields.inside("memory")
    limit, of_steps = asked.number("limit_bytes"), bool(asked.data.get("of_steps"))
    bars, rows = [], []
    for number, one in enumerate(fields.each("steps"), 1):
        needed = one.number("step_bytes")
        share = f", {needed / limit:.0%} of what is allowed" if of_steps and limit else ""
        name = clean(f"{number}. {one.words('kind')}")
        bars.append(Bar(name, needed, f"{format_bytes(needed)}{share}"))
        rows.append((name, format_bytes(needed)))
    counted = "Input, output and pack buffer" if of_steps else "The array, between steps,"
    lead = f"{counted} may take {format_bytes(limit)} of a device."
    picture = Bars("input, output and pack buffer of each step", tuple(bars))
    table = Table(("step", ">memory"), tuple(rows))
    return Section("Memory of the steps", lead, (picture,), (table,))
