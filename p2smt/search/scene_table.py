"""All scenes that a request could meet, as the rows of a placement cost table.

The time of a request depends on a placement only through the digits of its axes at each
level, and on their strides only where positions matter
(:func:`p2smt.cost.alpha_beta.relevant_digits`). Each such combination is one row of the cost table
that goes into the placement encodings; some of them belong to no whole matrix, which does no harm.
Rules leave out rows that they exclude.  The rows are counted before any is built.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p2smt.cluster.topology import LinkKind, Topology
from p2smt.cost.alpha_beta import relevant_digits
from p2smt.cost.scene import Scene
from p2smt.errors import OutOfTimeError, TooLarge
from p2smt.parallelism.placement import AxisRule, FixedEntry, Placement
from p2smt.problems.placement import LevelTerm
from p2smt.result import StopWatch
from p2smt.search.scene_columns import Columns, Split, across_levels, fixed_values

MAX_SCENES = 50_000
TermValues = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SceneTable:
    """Terms of a request's cost table, and the scene of each combination of their values."""

    terms: tuple[LevelTerm, ...]
    scenes: Mapping[TermValues, Scene]

    def values(self, placement: Placement) -> TermValues:
        """The row of the table that a placement falls into."""
        return tuple(
            math.prod(placement.matrix[i][term.level] for i in term.axes) for term in self.terms
        )


def scene_table(
    topology: Topology,
    axes: Sequence[int],
    chosen: Sequence[int],
    rules: Sequence[AxisRule | FixedEntry] = (),
    watch: StopWatch | None = None,
) -> SceneTable:
    """The table of the chosen axes (indices, ascending); ``axes`` are all axis sizes.

    Raises:
        TooLarge: more than MAX_SCENES rows; told before they are built.
        OutOfTimeError: the watch expired.
    """
    exact = _position_levels(topology)
    columns = Columns(
        topology.sizes,
        tuple(axes),
        tuple(chosen),
        tuple(exact),
        fixed_values(rules),
        across_levels(rules),
    )
    if columns.more_than(MAX_SCENES):
        raise TooLarge(
            f"a request on axes of sizes {[axes[i] for i in chosen]}",
            f"has more than {MAX_SCENES} ways to lie on the levels",
            "fix entries of these axes with --fix, keep them inside a level with --require, or "
            "write fewer levels",
        )
    scenes: dict[TermValues, Scene] = {}
    for split in columns.splits():
        values = tuple(v for column in split for v in column.values)
        if watch is not None and watch.expired():
            raise OutOfTimeError
        if values not in scenes:
            scenes[values] = _scene(topology, split)
    return SceneTable(_terms(exact, len(axes), chosen), scenes)


def _scene(topology: Topology, split: Split) -> Scene:
    return Scene(topology, relevant_digits(topology, [column.digits for column in split]))


def _position_levels(topology: Topology) -> list[bool]:
    """Levels where the positions of the members matter, not only their number."""
    found, below_ports = [], False
    for j, level in enumerate(topology.levels):
        found.append(below_ports or level.link.kind is not LinkKind.SWITCH)
        below_ports |= 1 < level.link.ports < topology.devices_under(j)
    return found


def _terms(exact: Sequence[bool], axes: int, chosen: Sequence[int]) -> tuple[LevelTerm, ...]:
    terms = []
    for j, positions in enumerate(exact):
        if not positions:
            terms.append(LevelTerm(j, tuple(chosen)))
            continue
        for i in chosen:
            terms.append(LevelTerm(j, (i,)))
            if i + 1 < axes:
                terms.append(LevelTerm(j, tuple(range(i + 1, axes))))
    return tuple(terms)
