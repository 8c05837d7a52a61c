"""Parallelism axes and parallelism matrices (P2, section on placements).

A placement has a row per axis and a column per level, outermost first.  An entry says how
many ways that axis is split at that level: row products are the axis sizes, column products
the level sizes.  Inside a level the device index is a mixed-radix number over the axes, the
first axis most significant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from p2smt.errors import InputError

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Matrix = tuple[tuple[int, ...], ...]
MAX_AXES = 8
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")


@dataclass(frozen=True, slots=True)
class ParallelismAxis:
    """A named way of splitting the work (data, tensor, pipeline ...) over ``size`` ranks."""

    name: str
    size: int

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"axis name {self.name[:40]!r}", "must be a letter, then letters, digits or _"
            )
        if self.size < 1:
            raise InputError(f"axis {self.name}={self.size}", "a size must be at least 1")


@dataclass(frozen=True, slots=True)
class Placement:
    """A parallelism matrix: ``matrix[i][j]`` is the split of axis i at level j."""

    matrix: Matrix

    def __post_init__(self) -> None:
        if not self.matrix or len({len(row) for row in self.matrix}) != 1 or not self.matrix[0]:
            raise InputError(f"matrix {self.text()}", "needs rows of one positive length")
        if any(entry < 1 for row in self.matrix for entry in row):
            raise InputError(f"matrix {self.text()}", "entries must be positive")

    def text(self) -> str:
        """The matrix as JSON without blanks."""
        return "[" + ",".join("[" + ",".join(map(str, row)) + "]" for row in self.matrix) + "]"

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Size of each axis: the row products."""
        return tuple(math.prod(row) for row in self.matrix)

    @property
    def level_sizes(self) -> tuple[int, ...]:
        """Size of each level: the column products."""
        return tuple(math.prod(column) for column in zip(*self.matrix, strict=True))

    def check(self, levels: Sequence[int], axes: Sequence[int]) -> None:
        """Raise InputError unless the matrix has these level and axis sizes."""
        for what, given, wanted in (
            ("row products (axis sizes)", self.axis_sizes, tuple(axes)),
            ("column products (level sizes)", self.level_sizes, tuple(levels)),
        ):
            if given != wanted:
                raise InputError(
                    f"matrix {self.text()}", f"its {what} are {list(given)}, not {list(wanted)}"
                )

    def factors(self, axes: Sequence[int]) -> tuple[int, ...]:
        """Per level, the product of the entries of these axes (ones kept)."""
        return tuple(math.prod(self.matrix[i][j] for i in axes) for j in range(self.width))

    @property
    def width(self) -> int:
        """Number of levels."""
        return len(self.matrix[0])

    def _digits(self) -> IntArray:
        """Device ids in an array with one dimension per (level, axis), level-major."""
        shape = [row[j] for j in range(self.width) for row in self.matrix]
        return np.arange(math.prod(shape), dtype=np.int64).reshape(shape)

    def rank_tensor(self) -> IntArray:
        """Device id of each rank: shape = axis sizes, entry = device in hierarchy order."""
        count = len(self.matrix)
        order = [j * count + i for i in range(count) for j in range(self.width)]
        return self._digits().transpose(order).reshape(self.axis_sizes)

    def groups(self, axes: Sequence[int]) -> IntArray:
        """Groups that reducing these axes induces: shape (groups, members), device ids.

        Members are in device order, which is row-major over the merged factors.
        """
        count, chosen = len(self.matrix), set(axes)
        order = [j * count + i for j in range(self.width) for i in range(count)]
        rest = [d for d in order if d % count not in chosen]
        inner = [d for d in order if d % count in chosen]
        members = math.prod(self.factors(sorted(chosen)))
        return self._digits().transpose(rest + inner).reshape(-1, members)


def default_ranks(axes: Sequence[int]) -> IntArray:
    """The default layout's rank tensor: row-major over the axes, devices in order."""
    return np.arange(math.prod(axes), dtype=np.int64).reshape(tuple(axes))


def rank_groups(ranks: IntArray, axes: Sequence[int]) -> IntArray:
    """Groups along ``axes`` of any rank tensor: shape (groups, members), members sorted."""
    rest = [i for i in range(ranks.ndim) if i not in axes]
    members = math.prod(ranks.shape[i] for i in axes)
    groups = ranks.transpose([*rest, *axes]).reshape(-1, members)
    return np.sort(groups, axis=1)


@dataclass(frozen=True, slots=True)
class AxisRule:
    """A side constraint on one axis.

    ``inside=True``: every entry at ``level`` (index) and outside it is 1.  ``inside=False``:
    one of them is more than 1, so the axis spans several entities of that level.
    ``by_opposite``: the user forbade the opposite; the rule is the same.
    """

    axis: int
    level: int
    inside: bool
    by_opposite: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FixedEntry:
    """A side constraint: ``matrix[axis][level] == value``."""

    axis: int
    level: int
    value: int
