"""The modelled parts of the report, as lines of Markdown, from the JSON files alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from experiments.placement_448x.model.distance import REASONS, Distance, distance, total
from experiments.placement_448x.model.summary import (
    Outcome,
    Results,
    by_case,
    ratios,
)
from experiments.placement_448x.report.text import Lines, matrix_text, percent, size_text, table
from experiments.placement_448x.store import HERE
from experiments.testbed.written.timings import read as read_times


def ratio_table(systems: Sequence[Results]) -> Lines:
    """The largest ratio of worst to best placement of each system."""
    rows = []
    for results in systems:
        top = ratios(results.outcomes())[0]
        small = ratios(results.outcomes(min(results.payloads)))[0]
        with_programs = ratios(results.outcomes(), lambda one: one.best_s)[0]
        rows.append(
            (
                results.label,
                size_text(results.headline),
                f"{top.ratio:.1f}x",
                top.case,
                matrix_text(top.worst.matrix),
                matrix_text(top.best.matrix),
                f"{with_programs.ratio:.1f}x",
                f"{small.ratio:.1f}x",
            )
        )
    head = ("system", "payload", "worst / best", "case", "worst", "best", "programs", "1 MiB")
    yield from table(head, rows)


def effort_table(systems: Sequence[Results]) -> Lines:
    """Cases, programs and times of the study."""
    rows, took = [], read_times(HERE)
    for results in systems:
        data, times = results.data, took[results.name]["synthesis_cpu_s"]
        rows.append(
            (
                results.label,
                len(data["cases"]),
                len(results.outcomes()),
                len(data["scenes"]),
                ", ".join(map(str, sorted(set(data["programs_per_scene"])))),
                f"{1000 * statistics.median(times):.0f} ms",
                f"{1000 * max(times):.0f} ms",
                f"{took[results.name]['study_cpu_s']:.1f} s",
            )
        )
    head = ("system", "cases", "requests", "scenes", "programs", "search, median", "longest")
    yield from table((*head, "whole study"), rows)


def distance_table(systems: Sequence[Results]) -> Lines:
    """How many requests of 1 GiB and more are within 10 % of the physical bound."""
    parts = [(results.label, distance(results)) for results in systems]
    rows = [_distance_row(*part) for part in parts]
    rows.append(_distance_row("**all**", total(part for _, part in parts)))
    head = ("system", "requests", "within 10 %", "pipelined", "furthest", *REASONS)
    yield from table(head, rows)


def _distance_row(label: str, found: Distance) -> tuple[object, ...]:
    return (
        label,
        found.requests,
        percent(found.plain / found.requests),
        percent(found.pipelined / found.requests),
        f"{found.worst:.2f}x",
        *(found.reasons[reason] or "" for reason in REASONS),
    )


_CASE_HEAD = ("best program", "largest speedup", "to bound", "pipelined", "programs", "search")


def case_table(results: Results) -> Lines:
    """Every case of one system at the paper's payload."""
    programs, times = results.data["programs_per_scene"], _times(results)
    rows = []
    for case, group in by_case(results.outcomes()).items():
        best, worst = (pick(group, key=_single) for pick in (min, max))
        scenes = {one.scene for one in group}
        rows.append(
            (
                case,
                len(group),
                matrix_text(best.matrix),
                matrix_text(worst.matrix),
                f"{best.default_s:.4g} s",
                f"{worst.default_s / best.default_s:.2f}x",
                f"{min(one.best_s for one in group):.4g} s",
                f"{max(one.speedup for one in group):.2f}x",
                f"{max(one.best_s / one.bound_s for one in group):.2f}x",
                f"{max(one.pipelined_s / one.bound_s for one in group):.2f}x",
                max(programs[scene] for scene in scenes),
                f"{1000 * sum(times[scene] for scene in scenes):.0f} ms",
            )
        )
    head = ("case", "placements", "best", "worst", "single on best", "worst / best")
    yield from table((*head, *_CASE_HEAD), rows)


def _single(one: Outcome) -> float:
    return one.default_s


def _times(results: Results) -> list[float]:
    times: list[float] = read_times(HERE)[results.name]["synthesis_cpu_s"]
    return times
