"""Bounds and answers of one request, by scene; three kinds, by how a matrix finds its scene.

``Listed``: every matrix is known, and its row.  ``Tabled``: the values of a cost table's terms say
which row, which is what a solver needs.  ``Loose``: too many rows for a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.cost.scene import Scene
from p2smt.errors import OutOfTimeError
from p2smt.parallelism.placement import IntArray, Matrix, Placement
from p2smt.parallelism.request import Request
from p2smt.plans.answers import least_s
from p2smt.plans.solution import RequestAnswer
from p2smt.problems.placement import CostTable
from p2smt.result import StopWatch
from p2smt.search.scene_table import SceneTable, TermValues
from p2smt.search.table.scenes import SceneRows

MAX_TICKS = 2**46
"""A row's cost is capped here: sums of them fit a solver's integers."""
FORBIDDEN = 2**62


@dataclass(slots=True)
class BoundEntry:
    """A bound in seconds; or, once it is refined, an answer, or not allowed."""

    bound_s: float
    answer: RequestAnswer | None = None
    allowed: bool = True

    def ticks(self, request: Request, tick_s: float) -> int:
        """The bound in ticks of one iteration, rounded down and capped: still a lower bound."""
        return min(int(request.times * self.bound_s / tick_s), MAX_TICKS)


@dataclass(slots=True)
class Loose:
    """Entries of a request with too many scenes for a table: made when a matrix falls into one.

    The solver does not see them, so its bounds hold, but say nothing of this request.
    """

    topology: Topology
    chosen: tuple[int, ...]
    request: Request
    entries: dict[TermValues, BoundEntry] = field(default_factory=dict)

    def values(self, matrix: Matrix) -> TermValues:
        """All that the scene of a matrix depends on, at most."""
        return tuple(entry for row in matrix for entry in row)

    def scene(self, values: TermValues) -> Scene:
        """The scene of these values."""
        width = len(self.topology.levels)
        rows = [values[at : at + width] for at in range(0, len(values), width)]
        return Scene.of(self.topology, Placement(tuple(rows)), self.chosen)

    def of(self, matrix: Matrix) -> BoundEntry:
        """The entry that a matrix falls into."""
        values = self.values(matrix)
        if values not in self.entries:
            bound_s = least_s(self.scene(values), self.request)
            self.entries[values] = BoundEntry(bound_s)
        return self.entries[values]


@dataclass(slots=True)
class Tabled:
    """Entries of one request by the values of its table's terms."""

    request: Request
    columns: SceneTable
    entries: dict[TermValues, BoundEntry]

    @property
    def scenes(self) -> Mapping[TermValues, Scene]:
        """The scene of each entry."""
        return self.columns.scenes

    def values(self, matrix: Matrix) -> TermValues:
        """The row that a matrix falls into."""
        return self.columns.values(Placement(matrix))

    def scene(self, values: TermValues) -> Scene:
        """The scene of these values."""
        return self.columns.scenes[values]

    def of(self, matrix: Matrix) -> BoundEntry:
        """The entry that a matrix falls into."""
        return self.entries[self.values(matrix)]

    def costs(self, tick_s: float) -> CostTable:
        """The rows in ticks, as a solver takes them."""
        rows = {
            values: entry.ticks(self.request, tick_s)
            for values, entry in self.entries.items()
            if entry.allowed
        }
        return CostTable(self.columns.terms, rows)


@dataclass(slots=True)
class Listed:
    """Entries of one request by the number of its scene, which is known of every matrix."""

    request: Request
    chosen: tuple[int, ...]
    rows: SceneRows
    entries: dict[TermValues, BoundEntry]

    @property
    def scenes(self) -> Mapping[TermValues, Scene]:
        """The scene of each entry."""
        return self.rows.by_number

    def values(self, matrix: Matrix) -> TermValues:
        """The row that a matrix falls into."""
        return (self.rows.number(Placement(matrix), self.chosen),)

    def scene(self, values: TermValues) -> Scene:
        """The scene of this row."""
        return self.rows.scenes[values[0]]

    def of(self, matrix: Matrix) -> BoundEntry:
        """The entry that a matrix falls into."""
        return self.entries[self.values(matrix)]

    def ticks(self, tick_s: float) -> IntArray:
        """The cost of each listed matrix in ticks; FORBIDDEN where it has no program."""
        costs = [
            entry.ticks(self.request, tick_s) if entry.allowed else FORBIDDEN
            for entry in self.entries.values()
        ]
        return np.array(costs, dtype=np.int64)[self.rows.of_matrix]


def filled(
    request: Request, scenes: Mapping[TermValues, Scene], watch: StopWatch
) -> tuple[dict[TermValues, BoundEntry], float]:
    """Lower bounds on scenes, in their order, and the longest of their single collectives.

    Raises:
        OutOfTimeError: the watch expired.
    """
    entries, longest_s = {}, 0.0
    for values, scene in scenes.items():
        if watch.expired():
            raise OutOfTimeError
        entries[values] = BoundEntry(least_s(scene, request))
        single_s = scene.fixed_time(request.kind, request.payload_bytes).seconds
        longest_s = max(longest_s, single_s)
    return entries, longest_s
