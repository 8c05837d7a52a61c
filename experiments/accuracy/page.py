"""The page of results in Markdown, from the values alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from experiments.accuracy.cells import KIB, Cell
from experiments.accuracy.hold_out import (
    IN_SAMPLE_TARGET,
    LARGER_TARGET,
    WORST_TARGET,
    HeldOut,
    larger_median,
)
from experiments.accuracy.pairs import CLEAR, Comparison, comparisons, pair_target
from experiments.accuracy.summary import (
    FACTOR_TARGET,
    TWO_NODES_TARGET,
    Figures,
    Result,
    far_cells,
    figures,
    long_cells,
    targets,
)
from experiments.tables.tables import Published
from p2smt.cost.accuracy import SIZE_CLASSES, size_class

Lines = Iterator[str]
INTRODUCTION = """\
# Predicted beside measured

Written by `make accuracy`. Every published table ([tables.json](../tables/tables.json)) beside what
p2smt predicts for it from a preset as it is, by the choice of the library that the table names, or
else the preset's. The constants of presets and libraries were fitted to these tables together
([constants.json](constants.json), by `fit_presets.py`), so that what [tables](#tables) has is in
sample; how far off predictions are of what was left out is under [blind](#blind), where the whole
system was, and [tables left out](#tables-left-out). Where one process drives all GPUs of a node,
its launches on the others are added to a call ([launches.py](launches.py)): programs train with
one process each.
*Ratio* is predicted / measured, *error* abs(ratio - 1); outliers stay in.

![Predicted against measured](figures/accuracy.svg)
"""
PAIRS = """\
One call on the whole against one, two and three calls on the part, at every size that both tables
have; a measured difference below 5 % is a tie. A program of so many steps inside the part takes at
least as long as those calls: a model that is wrong here promises gains that nobody measures."""


BLIND = """\
Every table predicted with constants that no table of its system was fitted to, nor a calibration:
what a price of p2smt is worth on a system that nobody measured. *Ratio* is here measured /
predicted, as ranges of prices are: its median, and in brackets what 10 and 90 % of the cells stay
above and below."""


def page(
    found: Sequence[Result],
    apart: Sequence[Published],
    unseen: Sequence[HeldOut],
    blind: Sequence[Result],
) -> str:
    """The whole page."""
    parts = (
        (INTRODUCTION,),
        _section("Blind", _blind_lines(blind)),
        _section("Targets", _target_table(found)),
        _section("Tables", _figure_table(found)),
        _section("Tables without a preset", _apart_table(apart)),
        _section("A whole and its parts", _pair_table(list(comparisons(found)))),
        _section("Tables left out", _held_out_lines(unseen)),
        _section("Every cell", _cell_tables(found)),
    )
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def _blind_lines(blind: Sequence[Result]) -> Lines:
    yield BLIND
    yield ""
    classes = [name for name, _ in SIZE_CLASSES]
    kinds = sorted({one.table.collective for one in blind})
    of = {kind: [one for one in blind if one.table.collective == kind] for kind in kinds}
    rows = [("all", blind), *of.items()] if blind else []
    yield from _table(
        ("collective", "cells", *classes, "error from 1 MiB, median", "error below, median"),
        ((name, *_spreads(results), *_medians(results)) for name, results in rows),
    )
    yield ""
    systems = dict.fromkeys(one.table.system for one in blind)
    yield from _table(
        ("system", "on", "cells", *classes, "worst cell from 1 KiB (predicted / measured)"),
        (_blind_row(name, [one for one in blind if one.table.system == name]) for name in systems),
    )


def _blind_row(name: str, results: Sequence[Result]) -> tuple[object, ...]:
    worst = figures(results).worst
    where = ", ".join(dict.fromkeys(one.topology.partition(":")[0] for one in results))
    shown = "" if worst is None else f"{worst.ratio:.2f} at {size(worst)}"
    return (name, where, *_spreads(results), shown)


def _spreads(results: Sequence[Result]) -> Iterator[object]:
    """How many cells, and of each class of payloads how they spread."""
    cells = [cell for one in results for cell in one.cells]
    yield len(cells)
    for name, _ in SIZE_CLASSES:
        logs = [-math.log(one.ratio) for one in cells if size_class(one.size_bytes) == name]
        if not logs:
            yield ""
            continue
        low, median, high = np.exp(np.quantile(logs, (0.1, 0.5, 0.9)))
        yield f"{median:.2f} ({low:.2f}, {high:.2f})"


def _medians(results: Sequence[Result]) -> tuple[str, str]:
    found = figures(results)
    return percent(found.large), percent(found.small)


def _section(title: str, lines: Iterable[str]) -> Lines:
    yield f"## {title}"
    yield ""
    yield from lines
    yield ""


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Lines:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"


def _target_table(found: Sequence[Result]) -> Lines:
    every = [*targets(found), pair_target(list(comparisons(found)))]
    rows = [(one.what, one.asked, one.found, _yes(one.met)) for one in every]
    yield from _table(("what", "target", "found", "met"), rows)
    yield from _misses(found)


def _misses(found: Sequence[Result]) -> Lines:
    """The cells that miss a target, and what their own tables say of them."""
    for title, misses in (
        (f"Cells from 1 KiB up beyond {FACTOR_TARGET:g}x", far_cells),
        (f"Two-node cells predicted above {TWO_NODES_TARGET:g}", long_cells),
    ):
        cells = [(one, cell) for one in found for cell in misses(one)]
        texts = [f"{one.table.name} at {size(cell)}: {_miss(one, cell)}" for one, cell in cells]
        if texts:
            yield ""
            yield f"{title}: {'; '.join(texts)}."
    wrong = [one for one in comparisons(found) if one.calls == 1 and not (one.tie or one.agree)]
    if wrong:
        texts = [
            f"{one.whole} and {one.part} at {bytes_text(one.size_bytes)}"
            f" (measured {100 * one.margin:.1f} % apart)"
            for one in wrong
        ]
        yield ""
        yield f"The wrong one called faster: {'; '.join(texts)}."


def _miss(one: Result, cell: Cell) -> str:
    """A cell's ratio, that of the same size in place, and whether its size stands out."""
    in_place = dict(one.table.in_place).get(cell.size_bytes)
    notes = [] if in_place is None else [f"in place {cell.predicted_s / in_place:.2f}"]
    if cell.size_bytes in one.table.spikes():
        notes.append("measured over 1.25 times as long as the next larger size")
    return f"{cell.ratio:.2f}" + (f" ({', '.join(notes)})" if notes else "")


def _figure_table(found: Sequence[Result]) -> Lines:
    head = ("table", "collective", "topology", "library", "cells", "error from 1 MiB, median")
    more = ("error below, median", "worst cell from 1 KiB", "below bound", "two nodes > 1.25")
    rows = [(one.table.name, one.table.collective, *_figures(one)) for one in found]
    yield from _table((*head, *more), rows)
    notes = [(one.table.name, one.table.note) for one in found if one.table.note]
    yield ""
    yield "; ".join(f"{name}: {note}" for name, note in notes) + "."


def _figures(one: Result) -> tuple[object, ...]:
    found: Figures = figures([one])
    worst = "" if found.worst is None else f"{found.worst.ratio:.2f} at {size(found.worst)}"
    return (
        one.topology,
        one.library or "none",
        found.cells,
        percent(found.large),
        percent(found.small),
        worst,
        found.below_bound,
        found.above_two_nodes if one.table.nodes == 2 else "",
    )


def _apart_table(apart: Sequence[Published]) -> Lines:
    if not apart:
        yield "None."
        return
    rows = [(one.name, one.collective, one.nodes, one.ranks, one.source) for one in apart]
    yield from _table(("table", "collective", "nodes", "GPUs", "source"), rows)


def _pair_table(found: Sequence[Comparison]) -> Lines:
    yield PAIRS
    yield ""
    names = dict.fromkeys((one.whole, one.part, one.calls) for one in found)
    head = (
        "whole",
        "part",
        "calls",
        "sizes",
        "ties",
        "agree",
        "disagree, measured over 25 % apart",
    )
    yield from _table(head, (_pair_row(name, found) for name in names))


def _pair_row(name: tuple[str, str, int], found: Sequence[Comparison]) -> tuple[object, ...]:
    mine = [one for one in found if (one.whole, one.part, one.calls) == name]
    clear = [one for one in mine if not one.tie]
    wrong = [one for one in clear if not one.agree]
    agree = f"{len(clear) - len(wrong)} of {len(clear)}"
    far = [bytes_text(one.size_bytes) for one in wrong if one.margin > CLEAR]
    return (*name, len(mine), len(mine) - len(clear), agree, ", ".join(far))


def _held_out_lines(unseen: Sequence[HeldOut]) -> Lines:
    if not unseen:
        yield "Not computed."
        return
    yield "Calibrated on some tables of a system, the other predicted, from a preset whose"
    yield "constants have not seen it either. Systems with one table are in sample, and marked so."
    yield ""
    yield f"Asked: at most {LARGER_TARGET:.0%} median over the larger tables left out (found"
    yield f"{percent(larger_median(unseen))}), each at most {WORST_TARGET:.0%}; in sample at most"
    yield f"{IN_SAMPLE_TARGET:.0%}."
    yield ""
    head = (
        "topology",
        "calibrated on",
        "predicted",
        "what",
        "median error",
        "largest",
        "target met",
    )
    yield from _table(head, (one.as_row() for one in unseen))


def _cell_tables(found: Sequence[Result]) -> Lines:
    head = ("size", "measured", "predicted", "ratio", "algorithm", "protocol")
    for one in found:
        title = f"{one.table.name}: {one.table.collective} on {one.topology}"
        yield f"### {title}, {one.library or 'no library'}"
        yield ""
        cells = [cell for cell in one.cells if cell.size_bytes >= KIB]
        yield from _table(head, (_cell_row(cell) for cell in cells))
        yield ""


def _cell_row(cell: Cell) -> tuple[object, ...]:
    times = (f"{1e6 * seconds:.4g} us" for seconds in (cell.measured_s, cell.predicted_s))
    return (size(cell), *times, f"{cell.ratio:.2f}", cell.algorithm, cell.protocol)


def percent(share: float | None) -> str:
    """A share with one decimal; empty where there is none."""
    return "" if share is None else f"{100 * share:.1f} %"


def size(cell: Cell) -> str:
    """A cell's size."""
    return bytes_text(cell.size_bytes)


def bytes_text(count: float) -> str:
    """Bytes in the largest binary unit."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:g} {unit}"
        count /= 1024
    return f"{count:g} GiB"


def _yes(met: bool) -> str:
    return "yes" if met else "**no**"
