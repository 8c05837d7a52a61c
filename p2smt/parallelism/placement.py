"""Parallelism axes and parallelism matrices (P2, section on placements).

A placement has a row per axis and a column per level, outermost first.  An entry says how
many ways that axis is split at that level: row products are the axis sizes, column products
the level sizes.  Inside a level the device index is a mixed-radix number over the axes, the
first axis most significant.

Side constraints are rules on them, as a user writes them:

    tp within node      every entry of tp at the node column and outside it is 1
    dp across rack      the opposite: one of them is more than 1
    pp=rack:2,node:1    pp is split 2 ways at the rack column and not at the node column

A requirement holds as it stands; forbidding a rule requires its opposite.
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


def as_matrix(rows: IntArray) -> Matrix:
    """An array as a parallelism matrix."""
    return tuple(tuple(row) for row in rows.tolist())


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


_MAX_SHOWN = 80


def parse_rule(
    text: str, require: bool, axis_names: Sequence[str], level_names: Sequence[str]
) -> AxisRule:
    """The rule that requires (or, with ``require=False``, forbids) "AXIS within|across LEVEL".

    Raises:
        InputError: the text has another form, or an axis or level is unknown.
    """
    words = text.split()
    if len(words) != 3 or words[1] not in ("within", "across"):
        raise InputError(
            f"rule {_shown(text)}",
            "a rule is AXIS within LEVEL, or AXIS across LEVEL",
            f"write for example {_example(axis_names)} within {_example(level_names)}",
        )
    axis = _index("axis", words[0], axis_names, text)
    level = _index("level", words[2], level_names, text)
    inside = (words[1] == "within") is require
    return AxisRule(axis, level, inside, by_opposite=not require)


def parse_fix(
    text: str, axis_names: Sequence[str], level_names: Sequence[str]
) -> tuple[FixedEntry, ...]:
    """The entries that "AXIS=LEVEL:N,LEVEL:N,..." fixes, in the order of the text.

    Raises:
        InputError: the text has another form, a level is named twice, or an axis or level is
            unknown.
    """
    axis_name, equals, entries = text.partition("=")
    if not equals:
        raise _not_a_fix(text, axis_names, level_names)
    axis = _index("axis", axis_name.strip(), axis_names, text)
    found: list[FixedEntry] = []
    for entry in entries.split(","):
        level_name, _, value = (part.strip() for part in entry.partition(":"))
        if not (value.isascii() and value.isdigit() and len(value) < 19 and int(value) > 0):
            raise _not_a_fix(text, axis_names, level_names)
        level = _index("level", level_name, level_names, text)
        if level in [other.level for other in found]:
            raise InputError(f"fix {_shown(text)}", f"names level {level_name} twice")
        found.append(FixedEntry(axis, level, int(value)))
    return tuple(found)


def _not_a_fix(text: str, axis_names: Sequence[str], level_names: Sequence[str]) -> InputError:
    return InputError(
        f"fix {_shown(text)}",
        "a fix is AXIS=LEVEL:N, with positive integers N, and more LEVEL:N after commas",
        f"write for example {_example(axis_names)}={_example(level_names)}:2",
    )


def _index(kind: str, name: str, names: Sequence[str], text: str) -> int:
    if name not in names:
        raise InputError(
            f"{kind} {_shown(name)} in {_shown(text)}",
            f"there is no such {kind}",
            f"use one of {', '.join(names)}",
        )
    return names.index(name)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "...")


def _example(names: Sequence[str]) -> str:
    """The last name but one, or the only one: for levels, where most axes fit."""
    return names[-2:][0] if names else "NAME"
