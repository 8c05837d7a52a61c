"""How far off predictions were, as ranges: the rows of ``p2smt/cost/accuracy.yaml``.

What :mod:`p2smt.cost.accuracy` reads, so that every price comes with its range.  Ratios are
measured / predicted, so that a predicted time times a ratio is a time.  A row of a system is of its
tables that were left out of a fit; where none was, of those that the constants were fitted to.
The rows of any other system are of all that were left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from experiments.accuracy.hold_out import LARGER, SMALLER, HeldOut
from experiments.accuracy.summary import Result
from experiments.accuracy.systems import topology_of
from experiments.tables.tables import Published
from p2smt.cost.accuracy import (
    ANY,
    BLIND,
    SIZE_CLASSES,
    most_in_node,
    outermost_crossed,
    size_class,
    system_name,
)

HEAD = """\
# Written by make accuracy: measured / predicted of the published tables of experiments/tables, by
# system, library, collective and class of payloads; low, median and high are the quantiles of 10,
# 50 and 90 % of so many cells, outliers included.
"""
QUANTILES = (0.1, 0.5, 0.9)
KEYS = ("system", "library", "basis", "collective", "size_class")
Ratios = dict[tuple[str, ...], list[float]]


def yaml_text(results: Sequence[Result], unseen: Sequence[HeldOut]) -> str:
    """The file's text."""
    rows = (", ".join(f"{key}: {value}" for key, value in row) for row in _rows(results, unseen))
    return f"{HEAD}\n{BLIND}:\n" + "".join(f"  - {{{row}}}\n" for row in rows)


def _rows(
    results: Sequence[Result], unseen: Sequence[HeldOut]
) -> Iterator[list[tuple[str, object]]]:
    """The keys and values of every row: first those of systems, then of any other."""
    left_out = {one.predicted: one.ratios for one in unseen if one.what in (LARGER, SMALLER)}
    own, every = _ratios(results, left_out)
    for found in (own, every):
        for key in sorted(found, key=lambda key: (key[:-1], _rank(key))):
            quantiles = np.exp(np.quantile(np.log(found[key]), QUANTILES))
            low, median, high = (float(f"{value:.3g}") for value in quantiles)
            yield [
                *((name, _quoted(text)) for name, text in zip(KEYS, key, strict=True)),
                *(("count", len(found[key])), ("low", low), ("median", median), ("high", high)),
            ]


def _ratios(
    results: Sequence[Result], left_out: dict[str, tuple[tuple[int, float], ...]]
) -> tuple[Ratios, Ratios]:
    seen, unseen, every = (defaultdict[tuple[str, ...], list[float]](list) for _ in range(3))
    for one in results:
        if not one.library:
            continue
        what = one.table.collective
        place = (system_of(one.table), one.library, "fitted", what)
        for cell in one.cells:
            seen[*place, size_class(cell.size_bytes)].append(1 / cell.ratio)
        for size, ratio in left_out.get(one.table.name, ()):
            unseen[*place, size_class(size)].append(ratio)
            for library in (one.library, ANY):
                for collective in (what, ANY):
                    key = (ANY, library, "assumed", collective, size_class(size))
                    every[key].append(ratio)
    return {**seen, **unseen}, every


def _rank(key: tuple[str, ...]) -> int:
    return [name for name, _ in SIZE_CLASSES].index(key[-1])


def _quoted(text: str) -> str:
    return f'"{text}"' if text == ANY or "," in text else text


def system_of(table: Published) -> str:
    """What a table was measured on, as a topology says it."""
    topology = topology_of(table)
    ranks = np.arange(table.ranks)[np.newaxis]
    level = outermost_crossed(topology, ranks)
    if level is None:
        raise ValueError(f"{table.name}: one rank alone")
    return system_name(topology, level, most_in_node(topology, ranks))
