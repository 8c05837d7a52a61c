"""Which parts of trees make the busiest capacity least busy, as a linear program.

Trees are columns: one tree of a kind stands for all that symmetries make of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PackedColumn:
    """A tree of a kind of root: by capacity, what it takes of it for a unit of its root's data."""

    kind: int
    loads: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class PackingProblem:
    """Weights of columns, 1 in all for each of ``kinds``, such that the greatest load is least."""

    kinds: int
    capacities: int
    columns: tuple[PackedColumn, ...]


@dataclass(frozen=True, slots=True)
class PackingShares:
    """The greatest load, the weights of the columns, and prices of the capacities, 1 in all."""

    load: float
    weights: tuple[float, ...]
    prices: tuple[float, ...]
