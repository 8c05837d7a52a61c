"""Which scene of a request each listed matrix has: one row per scene, many matrices to a row.

Times depend on the scene alone, so what is learnt of a row holds for all of its matrices at once.
Positions that do not matter are gone from the digits of a scene
(:func:`p2smt.cost.alpha_beta.relevant_digits`), level by level, so the digits of each column are
worked out once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.cost.alpha_beta import relevant_digits
from p2smt.cost.loads.footprint import Digits, digits_of
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import IntArray, Placement
from p2smt.search.table.matrices import Column, MatrixList


@dataclass(frozen=True, slots=True)
class SceneRows:
    """The scenes of a request, and of each listed matrix the number of its scene."""

    scenes: tuple[Scene, ...]
    of_matrix: IntArray
    _numbers: dict[tuple[Digits, ...], int] = field(default_factory=dict)

    @property
    def by_number(self) -> Mapping[tuple[int, ...], Scene]:
        """The scenes by the numbers of their rows."""
        return {(n,): scene for n, scene in enumerate(self.scenes)}

    def number(self, placement: Placement, chosen: Sequence[int]) -> int:
        """The number of the scene of a listed matrix."""
        if not self._numbers:
            self._numbers.update((scene.digits, n) for n, scene in enumerate(self.scenes))
        return self._numbers[Scene.of(self.scenes[0].topology, placement, chosen).digits]


def scene_rows(topology: Topology, listed: MatrixList, chosen: Sequence[int]) -> SceneRows:
    """The rows of a request on these axes (indices, ascending)."""
    codes = np.zeros(len(listed), dtype=np.int64)
    digits = []
    for j, columns in enumerate(listed.columns):
        here = [_digits(topology, j, column, chosen) for column in columns]
        different = sorted(set(here))
        numbers = np.array([different.index(one) for one in here], dtype=np.int64)
        digits.append([different[n] for n in numbers])
        _, codes = np.unique(
            codes * len(different) + numbers[listed.ids[:, j]], return_inverse=True
        )
    _, first = np.unique(codes, return_index=True)
    found = (
        tuple(level[n] for level, n in zip(digits, listed.ids[at], strict=True)) for at in first
    )
    return SceneRows(tuple(Scene(topology, one) for one in found), codes.reshape(-1))


def _digits(topology: Topology, level: int, column: Column, chosen: Sequence[int]) -> Digits:
    """The digits of a column's axes at its level, as far as they matter there."""
    (here,) = digits_of(Placement(tuple((entry,) for entry in column)), chosen)
    alone: list[Digits] = [()] * len(topology.levels)
    alone[level] = here
    return relevant_digits(topology, alone)[level]
