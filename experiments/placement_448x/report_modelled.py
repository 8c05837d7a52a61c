"""The modelled parts of the report, as lines of Markdown, from the JSON files alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from experiments.placement_448x.distance import REASONS, Distance, distance, total
from experiments.placement_448x.report_text import Lines, matrix_text, percent, size_text, table
from experiments.placement_448x.summary import (
    Gains,
    Outcome,
    Results,
    by_case,
    crossing,
    gains,
    ratios,
)

KINDS = {
    "inside": "inside one node (rack, slice)",
    "spread": "one member in each of several",
    "mixed": "several members in each of several",
}


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


def gain_cells(found: Gains, cross: Gains) -> tuple[str, ...]:
    """The cells of a row of gains."""
    return (
        str(found.requests),
        percent(found.share),
        percent(cross.share),
        f"{found.mean_of_gaining:.2f}x",
        f"{found.mean:.2f}x",
        f"{found.largest:.2f}x",
    )


GAIN_HEAD = ("requests", "gain", "of crossing", "mean of gaining", "mean of all", "largest")


def gain_table(systems: Sequence[Results]) -> Lines:
    """Gains of each system with each choice of algorithms, at the paper's payload."""
    rows: list[tuple[str, ...]] = []
    for results in systems:
        for algorithm in results.algorithms:
            every = results.outcomes(0, algorithm)
            cells = gain_cells(gains(every), gains(crossing(every)))
            pipelined = gains(every, lambda one: one.pipelined_speedup)
            last = (f"{pipelined.mean:.2f}x", f"{pipelined.largest:.2f}x")
            rows.append((results.label, algorithm, *cells, *last))
    head = ("system", "algorithm", *GAIN_HEAD, "pipelined: mean of all", "largest")
    yield from table(head, rows)


def pooled(systems: Sequence[Results], algorithms: Sequence[str]) -> list[Outcome]:
    """The requests of several systems at the paper's payload, once per choice of algorithms."""
    return [one for r in systems for a in algorithms for one in r.outcomes(0, a)]


def pooled_table(systems: Sequence[Results]) -> Lines:
    """Gains over several systems together."""
    choices = (("automatic",), ("ring",), ("tree",), ("ring", "tree"))
    rows = []
    for choice in choices:
        every = pooled(systems, choice)
        cells = gain_cells(gains(every), gains(crossing(every)))
        rows.append((" and ".join(choice), *cells))
    yield from table(("algorithm", *GAIN_HEAD), rows)


def kind_table(systems: Sequence[Results], algorithm: str) -> Lines:
    """Gains by where the groups lie, beside the most that an ideal flat ring can lose."""
    rows = []
    for kind, text in KINDS.items():
        every = [one for one in pooled(systems, (algorithm,)) if one.kind == kind]
        found = gains(every)
        limit = statistics.fmean(one.ring_limit for one in every)
        most = max(one.ring_limit for one in every)
        cells = (percent(found.share), f"{found.mean:.2f}x", f"{found.largest:.2f}x")
        rows.append((text, len(every), *cells, f"{limit:.2f}x", f"{most:.2f}x"))
    head = ("groups", "requests", "gain", "mean", "largest", "ring limit, mean", "largest")
    yield from table(head, rows)


def payload_table(systems: Sequence[Results], algorithm: str) -> Lines:
    """Gains by payload."""
    rows: list[tuple[str, ...]] = []
    sizes = sorted(set(systems[0].payloads[:-1]))
    for payload in (*sizes, 0):
        every = [one for r in systems for one in r.outcomes(payload, algorithm)]
        name = size_text(payload) if payload else "the paper's"
        rows.append((name, *gain_cells(gains(every), gains(crossing(every)))))
    yield from table(("payload", *GAIN_HEAD), rows)


def shape_table(systems: Sequence[Results], least: int = 1) -> Lines:
    """Which programs are best where, at the paper's payload."""
    found: dict[tuple[str, str], list[Outcome]] = {}
    for results in systems:
        for one in results.outcomes():
            found.setdefault((one.kind, one.program), []).append(one)
    order = list(KINDS)
    ranked = sorted(found.items(), key=lambda item: (order.index(item[0][0]), -len(item[1])))
    rows = [
        (KINDS[kind], program, len(group), f"{gains(group).mean:.2f}x", _splits(group))
        for (kind, program), group in ranked
        if len(group) >= least
    ]
    yield from table(("groups", "best program", "requests", "mean speedup", "split"), rows)


def _splits(group: Sequence[Outcome]) -> str:
    """The most frequent splits over the levels."""
    counts: dict[tuple[int, ...], int] = {}
    for one in group:
        counts[one.factors] = counts.get(one.factors, 0) + 1
    ranked = sorted(counts, key=lambda factors: (-counts[factors], factors))
    text = ", ".join(" x ".join(map(str, factors)) for factors in ranked[:4])
    return text + (", .." if len(ranked) > 4 else "")


def effort_table(systems: Sequence[Results]) -> Lines:
    """Cases, programs and times of the study."""
    rows = []
    for results in systems:
        data = results.data
        times = data["effort"]["synthesis_cpu_s"]
        rows.append(
            (
                results.label,
                len(data["cases"]),
                len(results.outcomes()),
                len(data["scenes"]),
                ", ".join(map(str, sorted(set(data["programs_per_scene"])))),
                f"{1000 * statistics.median(times):.0f} ms",
                f"{1000 * max(times):.0f} ms",
                f"{data['effort']['study_cpu_s']:.1f} s",
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
                f"{max(one.pipelined_s / one.bound_s for one in group):.2f}x",
                max(programs[scene] for scene in scenes),
                f"{1000 * sum(times[scene] for scene in scenes):.0f} ms",
            )
        )
    head = ("case", "placements", "best", "worst", "single on best", "worst / best")
    yield from table(
        (*head, "best program", "largest speedup", "to bound", "programs", "search"), rows
    )


def _single(one: Outcome) -> float:
    return one.default_s


def _times(results: Results) -> list[float]:
    times: list[float] = results.data["effort"]["synthesis_cpu_s"]
    return times
