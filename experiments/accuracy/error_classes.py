"""Relative errors by library, operation and size: ``p2smt/cost/library/accuracy.yaml``.

What :mod:`p2smt.cost.library.accuracy` reads, so that an answer can say that nobody would measure
its gain.  The error of a class is the one that four of five predictions keep to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from experiments.accuracy.cells import Cell
from experiments.accuracy.summary import Result

SHARE = 0.8
"""Part of the cells whose error is at most that of their class."""
UP_TO = (("64 KiB", 2**16), ("1 MiB", 2**20), ("64 MiB", 2**26), (None, None))
"""Size classes, smallest first: the largest size that each holds."""
LEAST_CELLS = 5
"""Fewer cells of an operation are no class of their own."""
HEAD = f"""\
# Written by make accuracy: errors of predictions by library, operation and payload, over the
# published tables of experiments/tables.  {SHARE:.0%} of their cells, outliers included, keep to
# abs(predicted / measured - 1) of their class.  The first class that holds a payload counts.
"""


def yaml_text(results: Sequence[Result]) -> str:
    """The file's text."""
    libraries = sorted({one.library for one in results if one.library})
    parts = [HEAD]
    for library in libraries:
        mine = [one for one in results if one.library == library]
        parts.append(f"{library}:\n" + "".join(f"  - {{{row}}}\n" for row in _rows(mine)))
    return "\n".join(parts)


def _rows(results: Sequence[Result]) -> Iterator[str]:
    """The classes of one library: by size, operations with enough cells before all together."""
    operations = sorted({one.table.collective for one in results})
    least = 0
    for text, most in UP_TO:
        size = "" if text is None else f"up_to: {text}, "
        for operation in operations:
            cells = _between(results, least, most, operation)
            if len(cells) >= LEAST_CELLS:
                yield f"operation: {operation}, {size}error: {error(cells)}"
        if every := _between(results, least, most):
            yield f"{size}error: {error(every)}"
        least = most or 0


def _between(
    results: Sequence[Result], above: int, most: int | None, operation: str = ""
) -> list[Cell]:
    """The cells of more than ``above`` and at most ``most`` bytes, of an operation or of all."""
    return [
        cell
        for one in results
        for cell in one.cells
        if operation in ("", one.table.collective)
        and above < cell.size_bytes
        and (most is None or cell.size_bytes <= most)
    ]


def error(cells: Sequence[Cell]) -> float:
    """The error that the share of the cells keeps to, to two digits."""
    kept = float(np.quantile([cell.error for cell in cells], SHARE, method="inverted_cdf"))
    return float(f"{kept:.2g}")
