"""The figures of a table and of all, and the targets that they are held against."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.accuracy.cells import KIB, MIB, Cell
from experiments.tables.tables import Published

LARGE_TARGET, SMALL_TARGET = 0.25, 0.40
"""Most that the median of abs(predicted / measured - 1) may be, from 1 MiB up and below."""
FACTOR_TARGET = 3.0
"""Most that a cell from 1 KiB up may be off, as a factor either way."""
TWO_NODES_TARGET = 1.25
"""Most that predicted / measured may be on two nodes."""


@dataclass(frozen=True, slots=True)
class Result:
    """A table with its cells on ``topology`` (a name) under ``library`` (empty: none)."""

    table: Published
    topology: str
    library: str
    cells: tuple[Cell, ...]


def far_cells(one: Result) -> list[Cell]:
    """Cells from 1 KiB up that are off by more than the target, either way."""
    return [c for c in one.cells if c.size_bytes >= KIB and c.factor > FACTOR_TARGET]


def long_cells(one: Result) -> list[Cell]:
    """Cells of two nodes that are predicted too long by more than the target."""
    cells = one.cells if one.table.nodes == 2 else ()
    return [cell for cell in cells if cell.ratio > TWO_NODES_TARGET]


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of some cells; None where there is no cell of that size.

    ``large`` and ``small`` are medians of abs(predicted / measured - 1) from 1 MiB up and below,
    ``worst`` the cell from 1 KiB up that is off by the largest factor, ``below_bound`` counts cells
    measured faster than the nominal links allow, ``above_two_nodes`` those of two nodes that are
    predicted too long by more than the target.
    """

    cells: int
    large: float | None
    small: float | None
    worst: Cell | None
    below_bound: int
    above_two_nodes: int


def figures(results: Sequence[Result]) -> Figures:
    """The figures of one table, or of several together: every cell counts the same."""
    cells = [cell for one in results for cell in one.cells]
    from_kib = [cell for cell in cells if cell.size_bytes >= KIB]
    return Figures(
        len(cells),
        _median([cell.error for cell in cells if cell.size_bytes >= MIB]),
        _median([cell.error for cell in cells if cell.size_bytes < MIB]),
        max(from_kib, key=lambda cell: cell.factor, default=None),
        sum(cell.measured_s < cell.bound_s for cell in cells),
        sum(len(long_cells(one)) for one in results),
    )


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


@dataclass(frozen=True, slots=True)
class Target:
    """One target: what it asks of what was found."""

    what: str
    asked: str
    found: str
    met: bool


def targets(results: Sequence[Result]) -> list[Target]:
    """The targets on all cells, and on the medians of each table."""
    every = figures(results)
    each = [figures([one]) for one in results]
    large = [one.large for one in each if one.large is not None]
    small = [one.small for one in each if one.small is not None]
    factor = every.worst.factor if every.worst else 1.0
    return [
        _at_most("median error from 1 MiB up, all cells", LARGE_TARGET, every.large or 0.0),
        _at_most("median error from 1 MiB up, worst table", LARGE_TARGET, max(large, default=0.0)),
        _at_most("median error below 1 MiB, all cells", SMALL_TARGET, every.small or 0.0),
        _at_most("median error below 1 MiB, worst table", SMALL_TARGET, max(small, default=0.0)),
        Target(
            "worst cell from 1 KiB up",
            f"at most {FACTOR_TARGET:g}x",
            f"{factor:.2f}x",
            factor <= FACTOR_TARGET,
        ),
        _none("cells measured below the link-level bound", every.below_bound),
        _none(f"two-node cells predicted above {TWO_NODES_TARGET:g}", every.above_two_nodes),
    ]


def _at_most(what: str, most: float, found: float) -> Target:
    return Target(what, f"at most {100 * most:.0f} %", f"{100 * found:.1f} %", found <= most)


def _none(what: str, found: int) -> Target:
    return Target(what, "none", str(found), not found)
