"""The report on speedups of programs, as lines of Markdown, from the JSON files alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from experiments.placement_448x.model.solving import LIBRARY, RING, TEXTBOOK, TREE
from experiments.placement_448x.model.summary import GAIN, Outcome, Results, crossing, gains
from experiments.placement_448x.report.text import Lines, percent, size_text, table

WAYS = {
    RING: "rings only",
    LIBRARY: "the library's choice",
    TREE: "trees only",
    TEXTBOOK: "textbook",
}
"""How tables name the choices of algorithms."""
KINDS = {
    "inside": "inside one node (rack, slice)",
    "spread": "one member in each of several",
    "mixed": "several members in each of several",
}


def gain_cells(every: Sequence[Outcome]) -> tuple[str, ...]:
    """The cells of a row of gains: each different group once, then all requests."""
    once, found = gains(different_groups(every)), gains(every)
    return (
        str(once.requests),
        percent(once.share),
        f"{once.mean:.2f}x",
        str(found.requests),
        percent(found.share),
        percent(gains(crossing(every)).share),
        f"{found.mean:.2f}x",
        f"{found.mean_of_gaining:.2f}x",
        f"{found.largest:.2f}x",
    )


GAIN_HEAD = ("different groups", "gain", "mean", "requests", "gain", "of crossing", "mean",
             "mean of gaining", "largest")  # fmt: skip


def gain_table(systems: Sequence[Results]) -> Lines:
    """Gains of each system with each choice of algorithms, at the paper's payload."""
    rows: list[tuple[str, ...]] = []
    for results in systems:
        for algorithm in results.algorithms:
            every = results.outcomes(0, algorithm)
            if algorithm != RING and _same(every, results.outcomes(0, RING)):
                continue
            pipelined = gains(every, lambda one: one.pipelined_speedup)
            last = (f"{pipelined.mean:.2f}x", f"{pipelined.largest:.2f}x")
            rows.append((results.label, WAYS[algorithm], *gain_cells(every), *last))
    head = ("system", "algorithms", *GAIN_HEAD, "pipelined: mean", "largest")
    yield from table(head, rows)


def _same(some: Sequence[Outcome], others: Sequence[Outcome]) -> bool:
    """Whether the single all-reduces and the best programs take equally long."""
    both = zip(some, others, strict=True)
    return all((a.default_s, a.best_s) == (b.default_s, b.best_s) for a, b in both)


def pooled(systems: Sequence[Results], algorithms: Sequence[str]) -> list[Outcome]:
    """The requests of several systems at the paper's payload, once per choice of algorithms."""
    return [one for r in systems for a in algorithms for one in r.outcomes(0, a)]


def pooled_table(systems: Sequence[Results]) -> Lines:
    """Gains over several systems together."""
    choices = ((RING,), (LIBRARY,), (TREE,), (RING, TREE), (TEXTBOOK,))
    rows = [(_ways(choice), *gain_cells(pooled(systems, choice))) for choice in choices]
    yield from table(("algorithms", *GAIN_HEAD), rows)


def _ways(choice: Sequence[str]) -> str:
    return " and ".join(WAYS[one] for one in choice)


def counting_table(systems: Sequence[Results]) -> Lines:
    """Gains of the same systems by which requests are counted."""
    rows = []
    for choice in ((RING,), (LIBRARY,), (RING, TREE)):
        every = pooled(systems, choice)
        for name, some in _countings(every):
            found = gains(some)
            means = (f"{found.mean:.2f}x", f"{found.mean_of_gaining:.2f}x", f"{found.largest:.2f}x")
            rows.append((_ways(choice), name, found.requests, percent(found.share), *means))
    head = ("algorithms", "counted", "number", "gain", "mean of all", "mean of gaining", "largest")
    yield from table(head, rows)


def without_twos(every: Sequence[Outcome]) -> list[Outcome]:
    """The requests whose groups have neither two members nor lie on two nodes."""
    return [one for one in every if 2 not in (one.factors[0], math.prod(one.factors))]


def different_groups(every: Sequence[Outcome]) -> list[Outcome]:
    """One request of each kind of group: those that cost the same under many names count once."""
    return list({(one.factors, one.default_s): one for one in every}.values())


def _countings(every: Sequence[Outcome]) -> list[tuple[str, list[Outcome]]]:
    """Ways to choose from the requests."""
    return [
        ("different groups", different_groups(every)),
        ("all requests", list(every)),
        ("those across nodes", crossing(every)),
        ("one axis reduced", [one for one in every if len(one.case.reduced) == 1]),
        ("neither two members nor two nodes", without_twos(every)),
    ]


def rule_table(systems: Sequence[Results]) -> Lines:
    """How often the rule of thumb says rightly which requests gain, with rings."""
    rows = []
    for results in systems:
        if list(results.data["system"]["kinds"].values()) != ["switch", "switch"]:
            continue
        node, gpu = results.data["system"]["bytes_per_s"].values()
        size = list(results.data["system"]["levels"].values())[1]
        mixed = [one for one in results.outcomes(0, RING) if one.kind == "mixed"]
        said = [size // one.factors[1] * gpu > GAIN * one.factors[0] * node for one in mixed]
        right = sum(one.gains is yes for one, yes in zip(mixed, said, strict=True))
        cells = (f"{gpu / node:.3g}", len(mixed), sum(one.gains for one in mixed), sum(said), right)
        rows.append((results.label, *cells))
    head = ("system", "b / B", "requests", "gain", "by the rule", "rule is right")
    yield from table(head, rows)


def kind_table(systems: Sequence[Results], algorithm: str) -> Lines:
    """Gains by where the groups lie, beside the most that an ideal flat ring can lose."""
    rows = []
    for kind, text in KINDS.items():
        every = [one for one in pooled(systems, (algorithm,)) if one.kind == kind]
        found = gains(every)
        limit = statistics.fmean(one.ring_limit for one in every)
        most = max(one.ring_limit for one in every)
        cells = (percent(found.share), f"{found.mean:.2f}x", f"{found.largest:.2f}x")
        limits = (f"{limit:.2f}x", f"{most:.2f}x") if algorithm == RING else ()
        rows.append((text, len(every), *cells, *limits))
    head = ("groups", "requests", "gain", "mean", "largest", "ring limit, mean", "largest")
    yield from table(head[: len(rows[0])], rows)


def payload_table(systems: Sequence[Results], algorithm: str) -> Lines:
    """Gains by payload."""
    rows: list[tuple[str, ...]] = []
    sizes = sorted(set(systems[0].payloads[:-1]))
    for payload in (*sizes, 0):
        every = [one for r in systems for one in r.outcomes(payload, algorithm)]
        name = size_text(payload) if payload else "the paper's"
        rows.append((name, *gain_cells(every)))
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
