"""How far off predictions were, as ranges: the rows of ``p2smt/cost/accuracy.yaml``.

What :mod:`p2smt.cost.accuracy` reads, so that every price comes with its range.  Ratios are
measured / predicted, so that a predicted time times a ratio is a time.

The rows of any system are of predictions by constants that no table of a system was fitted to
(:mod:`.blind`).  A row of hardware that tables measured is of what a fit without them predicts: of
others of the hardware, where several systems have it; else of one table of the system left out,
or of those that the constants were fitted to, and as much wider as systems of the same hardware
lie apart.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from experiments.accuracy.hold_out import LARGER, SMALLER, HeldOut
from experiments.accuracy.summary import Result
from experiments.accuracy.systems import has_profile, topology_of
from experiments.tables.tables import Published
from p2smt.cluster.error_class import kept_error
from p2smt.cost.accuracy import (
    ANY,
    BLIND,
    BOTH,
    SIZE_CLASSES,
    most_in_node,
    outermost_crossed,
    size_class,
    system_name,
)

HEAD = """\
# Written by make accuracy: measured / predicted of the published tables of experiments/tables, by
# system, library, collective and class of payloads; low, median and high are the quantiles of 10,
# 50 and 90 % of so many cells, outliers included; of any system 5, 50 and 95 %, systems alike.
"""
QUANTILES = (0.1, 0.5, 0.9)
OF_ANY = (0.05, 0.5, 0.95)
"""Of any system: wider, for the next one is none of those that tables are of.  With each system
left out in turn, the rows of the others hold 80 % of its cells, in every class of payloads."""
LEAST_SYSTEMS = 7
"""Fewer say nothing of the next one: there the row of more libraries or collectives counts."""
DRAWN = tuple(round(0.05 + 0.1 * n, 2) for n in range(10))
KEYS = ("system", "library", "basis", "collective", "size_class")
Key = tuple[str, ...]


def yaml_text(results: Sequence[Result], unseen: Sequence[HeldOut], blind: Sequence[Result]) -> str:
    """The file's text."""
    rows = (
        ", ".join(f"{key}: {value}" for key, value in row) for row in _rows(results, unseen, blind)
    )
    blind_rows = f"{HEAD}\n{BLIND}:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    return blind_rows + both_text(results)


def both_text(results: Sequence[Result]) -> str:
    """Which of two algorithms tables have faster that are alike but for them, where all agree."""
    named = [one for one in results if one.table.algorithm and one.library]
    found: dict[Key, set[bool]] = defaultdict(set)
    for one, other in itertools.permutations(named, 2):
        same = (_place(one), one.table.system, one.table.nodes, one.table.ranks)
        if same != (_place(other), other.table.system, other.table.nodes, other.table.ranks):
            continue
        theirs = {cell.size_bytes: cell.measured_s for cell in other.cells}
        for cell in one.cells:
            if cell.size_bytes in theirs:
                ways = (one.table.algorithm, other.table.algorithm)
                key = (*_place(one), size_class(cell.size_bytes), *ways)
                found[key].add(cell.measured_s < theirs[cell.size_bytes])
    keys = (*KEYS, "faster", "slower")
    rows = (
        ", ".join(
            f"{name}: {_quoted(text)}"
            for name, text in zip(keys, key, strict=True)
            if name != "basis"
        )
        for key in sorted(found)
        if found[key] == {True}
    )
    return f"\n{BOTH}:\n" + "".join(f"  - {{{row}}}\n" for row in rows)


def _rows(
    results: Sequence[Result], unseen: Sequence[HeldOut], blind: Sequence[Result]
) -> Iterator[list[tuple[str, object]]]:
    """The keys and values of every row: first those of systems, then of any other."""
    own, apart = _of_hardware(results, unseen, blind), _lying_apart(results)
    for key in sorted(own, key=lambda key: (key[:-1], _rank(key))):
        ratios, alone = own[key]
        yield _row(key, ratios, QUANTILES, apart[key[-1]] if alone else 1.0)
    every = _of_any(blind)
    for key in sorted(every, key=lambda key: (key[:-1], _rank(key))):
        yield _row(key, every[key], OF_ANY)


def _row(
    key: Key, ratios: Sequence[float], parts: tuple[float, ...], wider: float = 1.0
) -> list[tuple[str, object]]:
    low, median, high = np.exp(np.quantile(np.log(ratios), parts))
    ends = (("low", low / wider), ("median", median), ("high", high * wider))
    return [
        *((name, _quoted(text)) for name, text in zip(KEYS, key, strict=True)),
        ("count", len(ratios)),
        *((name, float(f"{value:.3g}")) for name, value in ends),
    ]


def _place(one: Result) -> tuple[str, str, str, str]:
    return system_of(one.table), one.library, "fitted", one.table.collective


def _systems(results: Sequence[Result]) -> dict[Key, set[str]]:
    """The systems of each hardware of which a collective was fitted."""
    found: dict[Key, set[str]] = defaultdict(set)
    for one in results:
        found[system_of(one.table), one.table.collective].add(one.table.system)
    return found


def _of_hardware(
    results: Sequence[Result], unseen: Sequence[HeldOut], blind: Sequence[Result]
) -> dict[Key, tuple[list[float], bool]]:
    """Ratios of each hardware, and whether one system alone has it."""
    systems = _systems([one for one in results if not has_profile(one.table)])
    left_out = {one.predicted: one.ratios for one in unseen if one.what in (LARGER, SMALLER)}
    found: dict[Key, tuple[list[float], bool]] = {}
    for seen, apart in zip(results, blind, strict=True):
        place = _place(seen)
        mine = systems.get((place[0], place[3]), set())
        if not seen.library or not mine:
            continue
        alone = len(mine) == 1 and not has_profile(seen.table)
        ratios = [(cell.size_bytes, 1 / cell.ratio) for cell in (seen if alone else apart).cells]
        if alone:
            ratios = list(left_out.get(seen.table.name, ratios))
        for size, ratio in ratios:
            key = (*place, size_class(size))
            known, whole = found.get(key, ([], True))
            found[key] = ([*known, ratio], whole and alone)
    return found


def _lying_apart(results: Sequence[Result]) -> dict[str, float]:
    """By class of payloads how far systems of one hardware lie from its middle: a factor that four
    of five keep to."""
    found: dict[str, list[float]] = {name: [0.0] for name, _ in SIZE_CLASSES}
    logs: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for one in results:
        if not has_profile(one.table):
            for cell in one.cells:
                place = (system_of(one.table), one.table.collective, size_class(cell.size_bytes))
                logs[place][one.table.system].append(-math.log(cell.ratio))
    for (_, _, size), by_system in logs.items():
        medians = [statistics.median(values) for values in by_system.values()]
        middle = statistics.fmean(medians)
        found[size] += [abs(one - middle) for one in medians if len(medians) > 1]
    return {size: math.exp(kept_error(off)) for size, off in found.items()}


def _of_any(blind: Sequence[Result]) -> dict[Key, list[float]]:
    """Ratios of any system by library and collective, where enough systems tell.

    Systems count alike, however many cells they have: the next one is none of them.
    """
    every: dict[Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in blind:
        for library in (one.library, ANY) if one.library else ():
            for collective in (one.table.collective, ANY):
                for cell in one.cells:
                    key = (ANY, library, "assumed", collective, size_class(cell.size_bytes))
                    every[key][one.table.system].append(1 / cell.ratio)
    return {
        key: [ratio for ratios in found.values() for ratio in _drawn(ratios)]
        for key, found in every.items()
        if len(found) >= LEAST_SYSTEMS or (key[1], key[3]) == (ANY, ANY)
    }


def _drawn(ratios: Sequence[float]) -> list[float]:
    """As many ratios of a system as of any other, spread as its own."""
    return [float(ratio) for ratio in np.exp(np.quantile(np.log(ratios), DRAWN))]


def _rank(key: tuple[str, ...]) -> int:
    return [name for name, _ in SIZE_CLASSES].index(key[-1])


def _quoted(text: str) -> str:
    return f'"{text}"' if text == ANY or "," in text else text


def system_of(table: Published) -> str:
    """What a table was measured on, as a topology says it."""
    topology = topology_of(table, profile=False)
    ranks = np.arange(table.ranks)[np.newaxis]
    level = outermost_crossed(topology, ranks)
    if level is None:
        raise ValueError(f"{table.name}: one rank alone")
    return system_name(topology, level, most_in_node(topology, ranks))
