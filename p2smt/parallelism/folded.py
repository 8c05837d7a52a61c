"""Folded placements: attention and experts by two matrices over the same levels.

In a mixture of experts a device computes attention by its place in one matrix (pp, dp, cp, tp) and
its experts by its place in another (pp, ed, ep, et; ed: data parallel of experts): tokens leave and
return inside a group along ep and et, so nothing but the pipeline ties the two.  A pair is
consistent if every device has the same stage and the same pipeline in both: the rows of pp are
equal and, where pp is split, its digit has the same stride.  With pp outermost inside every level
equal rows suffice.  Source: "MoE Parallel Folding" (arXiv 2504.14960), Megatron-LM,
``parallel_state.py``, whose assertion on groups of pp this is, level by level.

The rows of both are numbered as one: those of attention, then those of experts but pp's.  Rules and
solvers (:class:`p2smt.problems.placement.PlacementProblem`) count so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from p2smt.errors import InputError
from p2smt.parallelism.matrices import PlacementRules, count_matrices, matrices
from p2smt.parallelism.placement import (
    AxisRule,
    FixedEntry,
    IntArray,
    Matrix,
    Placement,
    as_matrix,
    default_ranks,
)
from p2smt.parallelism.rank_list import matrix_of

PIPELINE = "pp"
_Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FoldedAxes:
    """Names of the rows of both matrices, the most significant digit of a level first.

    Raises:
        InputError: a matrix has no pp, or a name twice.
    """

    attention: tuple[str, ...] = (PIPELINE, "dp", "cp", "tp")
    experts: tuple[str, ...] = (PIPELINE, "ed", "ep", "et")

    def __post_init__(self) -> None:
        for names in (self.attention, self.experts):
            if PIPELINE not in names or len(set(names)) < len(names):
                raise InputError(f"axes {','.join(names)}", f"need {PIPELINE}, and each name once")

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the rows of both as one: what ``parse_rule`` and ``parse_fix`` are given."""
        return (*self.attention, *(name for name in self.experts if name != PIPELINE))

    def in_both(self, rules: PlacementRules) -> tuple[AxisRule | FixedEntry, ...]:
        """The rules, and each also on the row of the same name in the other matrix, if any."""
        return tuple(
            replace(rule, axis=i)
            for rule in rules
            for i, name in enumerate(self.rows)
            if name == self.rows[rule.axis]
        )


PP_OUTERMOST = FoldedAxes()
"""Megatron's orders of ranks, tp-cp-dp-pp and et-ep-ed-pp, fastest first."""
DP_OUTERMOST = FoldedAxes(("dp", PIPELINE, "cp", "tp"), ("ed", PIPELINE, "ep", "et"))
"""The same with ``--use-tp-pp-dp-mapping``: tp-cp-pp-dp and et-ep-pp-ed."""
HSDP = FoldedAxes((PIPELINE, "dpr", "dps", "cp", "tp"), (PIPELINE, "dpr", "eds", "ep", "et"))
"""Replicas of shards, dp = dpr dps and ed = dpr eds: torchtitan's meshes (``parallel_dims.py``; pp,
dp_replicate, dp_shard, cp, tp; pp, dp_replicate, efsdp, ep), where et is 1."""
WITH_COPIES = FoldedAxes((PIPELINE, "dpr", "dps", "cp", "tp"), (PIPELINE, "edr", "eds", "ep", "et"))
"""Those of ``PP_OUTERMOST`` where what ZeRO shards has copies: dp is copies, the outer parts of its
row, and the ranks over which one is sharded; so is ed, by itself."""


def with_copies(placement: Placement, copies: int) -> Placement:
    """A placement whose second row, data parallelism, is divided: its outer parts are copies.

    Raises:
        InputError: the outer parts of that row do not multiply to so many copies.
    """
    every = np.array(placement.matrix, dtype=np.int64)[None]
    found = divided(every, copies)
    if not len(found):
        row = list(placement.matrix[1])
        rule = f"its parts {row} of dp, from the outermost, do not multiply to that"
        raise InputError(f"dp_replicate={copies} on {placement.text()}", rule, "take another")
    return Placement(as_matrix(found[0]))


def divided(every: IntArray, copies: int) -> IntArray:
    """The same of those of many matrices that can be: (matrices, axes, levels), one axis more.

    From the outermost level on parts of the second row are copies, as long as there are more.
    """
    row, left = every[:, 1], np.full(len(every), copies, dtype=np.int64)
    outer, whole = np.ones_like(row), np.ones(len(every), dtype=np.bool_)
    for level in range(row.shape[1]):
        outer[:, level] = np.gcd(row[:, level], left)
        left //= outer[:, level]
        whole &= (left == 1) | (outer[:, level] == row[:, level])
    parts = [every[:, :1], outer[:, None], (row // outer)[:, None], every[:, 2:]]
    return np.asarray(np.concatenate(parts, axis=1)[whole & (left == 1)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FoldedPlacement:
    """Where attention and experts lie: two consistent matrices.

    Raises:
        InputError: the rows are not those of ``axes``, the levels differ, the rows of pp or its
            strides do, or another axis that both name has two sizes.
    """

    attention: Placement
    experts: Placement
    axes: FoldedAxes = PP_OUTERMOST

    def __post_init__(self) -> None:
        broken = self._broken()
        if broken:
            given = f"attention {self.attention.text()} with experts {self.experts.text()}"
            raise InputError(given, broken, "change one of them, or leave one out")

    def _broken(self) -> str:
        """The first rule that the pair breaks; empty if there is none."""
        attention, experts, axes = self.attention, self.experts, self.axes
        for placement, names in ((attention, axes.attention), (experts, axes.experts)):
            if len(placement.matrix) != len(names):
                return f"the rows of {placement.text()} must be {', '.join(names)}"
        if attention.level_sizes != experts.level_sizes:
            levels = list(attention.level_sizes), list(experts.level_sizes)
            return f"both must have the same levels, not {levels[0]} and {levels[1]}"
        mine, other = axes.attention.index(PIPELINE), axes.experts.index(PIPELINE)
        stages = attention.matrix[mine]
        if stages != experts.matrix[other]:
            rows = list(stages), list(experts.matrix[other])
            return f"both must have the same row of {PIPELINE}, not {rows[0]} and {rows[1]}"
        outside = attention.factors(range(mine)), experts.factors(range(other))
        for j, ways in enumerate(stages):
            if ways > 1 and outside[0][j] != outside[1][j]:
                splits = f"not {outside[0][j]} and {outside[1][j]} ways"
                return f"level {j} must be split alike outside {PIPELINE}, {splits}"
        sizes = dict(zip(axes.attention, attention.axis_sizes, strict=True))
        for name, size in zip(axes.experts, experts.axis_sizes, strict=True):
            if sizes.get(name, size) != size:
                return f"{name} must have one size, not {sizes[name]} and {size}"
        return ""

    def check(
        self, levels: Sequence[int], attention: Sequence[int], experts: Sequence[int]
    ) -> None:
        """Raise InputError unless the matrices have these level and axis sizes."""
        self.attention.check(levels, attention)
        self.experts.check(levels, experts)

    def attention_groups(self, names: Sequence[str]) -> IntArray:
        """Groups along axes of attention, as :meth:`Placement.groups` has them.

        Raises:
            InputError: attention has no such axis.
        """
        return self.attention.groups(_indices(names, self.axes.attention))

    def expert_groups(self, names: Sequence[str]) -> IntArray:
        """Groups along axes of experts.

        Raises:
            InputError: experts have no such axis.
        """
        return self.experts.groups(_indices(names, self.axes.experts))

    @property
    def rows(self) -> Matrix:
        """The rows of both as one matrix, pp's once."""
        return (*self.attention.matrix, *_but_pipeline(self.experts.matrix, self.axes.experts))

    @staticmethod
    def of_rows(rows: Matrix, axes: FoldedAxes = PP_OUTERMOST) -> FoldedPlacement:
        """The pair with these rows.

        Raises:
            InputError: they are none of a consistent pair.
        """
        count, place = len(axes.attention), axes.experts.index(PIPELINE)
        if len(rows) != len(axes.rows):
            raise InputError(f"{len(rows)} rows", f"must be those of {', '.join(axes.rows)}")
        stages, rest = rows[axes.attention.index(PIPELINE)], rows[count:]
        experts = (*rest[:place], stages, *rest[place:])
        return FoldedPlacement(Placement(rows[:count]), Placement(experts), axes)


def in_rank_order(
    levels: Sequence[int],
    attention: Sequence[int],
    experts: Sequence[int],
    axes: FoldedAxes = PP_OUTERMOST,
) -> FoldedPlacement | None:
    """The pair by which ranks 0, 1, .. lie on the devices in order, row-major over the axes.

    None: a parallelism matrix does not express the order of attention or that of experts.

    Raises:
        InputError: the pipelines of the two differ, or the sizes do not fit the levels.
    """
    _check_sizes(levels, attention, experts)
    found = [matrix_of(default_ranks(sizes), levels) for sizes in (attention, experts)]
    whole = [Placement(matrix) for matrix in found if matrix is not None]
    return FoldedPlacement(whole[0], whole[1], axes) if len(whole) == 2 else None


def experts_numbered(attention: IntArray, experts: Sequence[int]) -> tuple[IntArray, IntArray]:
    """The matrices of experts whose ranks are those of attention, numbered once.

    Frameworks number ranks row-major over the axes of attention, and read the same numbers over
    those of experts, pp outermost in both (:data:`PP_OUTERMOST`).  So a matrix of attention leaves
    experts one matrix, or none, where a number in between is no part of a level.

    Args:
        attention: matrices with pp's row the first, shape (matrices, axes, levels).
        experts: sizes of the axes of experts, pp's the first.

    Returns:
        Which of the matrices leave one, and the one that each of these leaves.
    """
    many, axes, levels = attention.shape
    left, rows = _joined(attention[:, 1:].reshape(many, -1), levels), []
    whole = np.ones(many, dtype=np.bool_)
    for size in reversed(experts[2:]):
        row, need = np.ones((many, levels), dtype=np.int64), np.full(many, size, dtype=np.int64)
        for at in reversed(range(left.shape[1])):
            taken = np.gcd(left[:, at], need)
            whole &= (taken == left[:, at]) | (taken == need)
            row[:, at % levels] *= taken
            need //= taken
            left[:, at] //= taken
        rows.append(row)
    rest = left.reshape(many, axes - 1, levels).prod(axis=1)
    found = np.stack([attention[:, 0], rest, *reversed(rows)], axis=1)
    return np.flatnonzero(whole), found[whole]


def _joined(digits: IntArray, levels: int) -> IntArray:
    """Digits of numbers, the most significant first, of level 0, 1, .., 0, 1, ..: neighbours of one
    level, with nothing but ones between them, are one digit."""
    found, rows = digits.copy(), np.arange(len(digits))
    last = np.full(len(digits), -1, dtype=np.int64)
    for at in range(digits.shape[1]):
        some = digits[:, at] > 1
        same = some & (last >= 0) & (last % levels == at % levels)
        found[same, at] *= found[rows[same], last[same]]
        found[rows[same], last[same]] = 1
        last[some] = at
    return found


class PipelinePairs(NamedTuple):
    """All pairs with one row of pp: each of these matrices of attention with each of experts.

    ``attention`` and ``experts``: shape (matrices, axes, levels), pp's row the first of each, in
    lexicographic order; they may not be written to.
    """

    pp_row: _Sizes
    attention: IntArray
    experts: IntArray

    def placements(self, axes: FoldedAxes = PP_OUTERMOST) -> Iterator[FoldedPlacement]:
        """The pairs one by one."""
        experts = [Placement(as_matrix(one)) for one in self.experts]
        for one in self.attention:
            attention = Placement(as_matrix(one))
            for other in experts:
                yield FoldedPlacement(attention, other, axes)


def pairs(
    levels: Sequence[int],
    attention: Sequence[int],
    experts: Sequence[int],
    rules: PlacementRules = (),
) -> Iterator[PipelinePairs]:
    """Every consistent pair of these sizes under rules, by row of pp, the first axis of both.

    Raises:
        InputError: the sizes do not fit, or a rule is on no row.
    """
    sides = _sides(levels, attention, experts, rules)
    for stages in sides.stages:
        mine, others = (_listed(tuple(levels), stages, *side) for side in sides.rest)
        if len(mine) and len(others):
            yield PipelinePairs(stages, mine, others)


def pair_count(
    levels: Sequence[int],
    attention: Sequence[int],
    experts: Sequence[int],
    rules: PlacementRules = (),
) -> int:
    """How many pairs :func:`pairs` has, none of which is made.

    Raises:
        InputError: the sizes do not fit, or a rule is on no row.
    """
    sides, total = _sides(levels, attention, experts, rules), 0
    for stages in sides.stages:
        left = tuple(size // ways for size, ways in zip(levels, stages, strict=True))
        total += math.prod(
            count_matrices(left, len(sizes), own).get(sizes, 0) for sizes, own in sides.rest
        )
    return total


class _Sides(NamedTuple):
    """The rows of pp that rules allow, and for each matrix its other sizes with their rules."""

    stages: tuple[_Sizes, ...]
    rest: list[tuple[_Sizes, tuple[AxisRule | FixedEntry, ...]]]


def _sides(
    levels: Sequence[int], attention: Sequence[int], experts: Sequence[int], rules: PlacementRules
) -> _Sides:
    _check_sizes(levels, attention, experts)
    ends = (1, len(attention), len(attention) + len(experts) - 1)
    for rule in rules:
        if not (0 <= rule.axis < ends[2] and 0 <= rule.level < len(levels)):
            raise InputError(f"rule {rule}", f"must be on rows 0 to {ends[2] - 1} and a level")
    if attention[0] != experts[0]:
        raise InputError(f"{PIPELINE}={attention[0]} and {experts[0]}", "must be one size")
    of_pipeline = tuple(rule for rule in rules if rule.axis == 0)
    return _Sides(
        _stages(tuple(levels), attention[0], of_pipeline),
        [
            (tuple(sizes[1:]), _between(rules, first, end))
            for sizes, first, end in ((attention, ends[0], ends[1]), (experts, ends[1], ends[2]))
        ],
    )


@lru_cache(maxsize=4096)
def _stages(
    levels: _Sizes, size: int, rules: tuple[AxisRule | FixedEntry, ...]
) -> tuple[_Sizes, ...]:
    """The rows that an axis of this size can have."""
    found = matrices(levels, (size, math.prod(levels) // size), rules)[:, 0]
    return tuple(tuple(row) for row in found.tolist())


def _between(rules: PlacementRules, first: int, end: int) -> tuple[AxisRule | FixedEntry, ...]:
    """The rules on rows from ``first`` to before ``end``, as rules on rows from 0."""
    mine = (rule for rule in rules if first <= rule.axis < end)
    return tuple(replace(rule, axis=rule.axis - first) for rule in mine)


def _listed(
    levels: _Sizes, stages: _Sizes, sizes: _Sizes, rules: tuple[AxisRule | FixedEntry, ...]
) -> IntArray:
    """The matrices with this first row and these sizes of the others, read-only."""
    left = tuple(size // ways for size, ways in zip(levels, stages, strict=True))
    rest = matrices(left, sizes, rules)
    first = np.broadcast_to(np.array(stages, dtype=np.int64), (len(rest), 1, len(levels)))
    found = np.concatenate([first, rest], axis=1)
    found.setflags(write=False)
    return found


def _check_sizes(levels: Sequence[int], *sides: Sequence[int]) -> None:
    for sizes in sides:
        if len(sizes) < 2 or min(sizes) < 1 or math.prod(sizes) != math.prod(levels):
            rule = (
                f"must be two or more with the number of devices, {math.prod(levels)}, as product"
            )
            raise InputError(f"sizes {list(sizes)}", rule)


def _indices(names: Sequence[str], known: Sequence[str]) -> list[int]:
    for name in names:
        if name not in known:
            raise InputError(f"axis {name[:40]!r}", f"must be one of {', '.join(known)}")
    return [known.index(name) for name in names]


def _but_pipeline(matrix: Matrix, names: Sequence[str]) -> Iterator[_Sizes]:
    return (row for row, name in zip(matrix, names, strict=True) if name != PIPELINE)
