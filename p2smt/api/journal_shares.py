"""Counts of the cubes of matrices and strategies, by other code than that which makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from p2smt.errors import InputError
from p2smt.parallel_search.journal.tree import Share
from p2smt.parallel_search.subproblem import Subproblem
from p2smt.parallelism.matrix_count import matrix_count
from p2smt.parallelism.placement import AxisRule, FixedEntry
from p2smt.training.axis_sizes import AxisSizes, possible_sizes
from p2smt.training.search.copies import row_names
from p2smt.training.search.question import PlanQuestion
from p2smt.training.strategy import AXES, EXPERT_AXES

Entries = tuple[int, ...]


def matrix_share(
    names: Sequence[str],
    levels: Sequence[int],
    axes: Sequence[int],
    rules: Sequence[AxisRule | FixedEntry] = (),
) -> Share:
    """The number of matrices in a cube whose decisions are first rows, such as ``dp:8,4``."""

    def share(cube: Subproblem) -> Fraction:
        return Fraction(matrix_count(levels, axes, rules, rows_of(cube.path, names)))

    return cache(share)


def strategy_share(question: PlanQuestion) -> Share:
    """The number of axis sizes with a matrix in a cube, whose first decision are the sizes.

    Sizes count that some valid strategy has; how many have the same is not counted.  Of a mixture
    these are sizes with a pair of matrices.  Where copies of shards are searched for, only matrices
    count whose data parallelism can be divided so.
    """
    names, every = row_names(question), possible_sizes(question)
    count = _pairs if question.model.experts else _matrices

    def matrices(sizes: AxisSizes, path: Sequence[str]) -> int:
        if sizes not in every:
            raise InputError(f"sizes {sizes}", "are those of no valid strategy")
        return count(question, *_joined(question, sizes), path)

    def share(cube: Subproblem) -> Fraction:
        if not cube.path:
            return Fraction(sum(matrices(sizes, ()) for sizes in every))
        return Fraction(matrices(sizes_of(cube.path[0], names), cube.path[1:]))

    return cache(share)


def _joined(question: PlanQuestion, sizes: AxisSizes) -> tuple[AxisSizes, int]:
    """Sizes with data parallelism as one axis, and how many copies of shards it has."""
    if not question.copied:
        return sizes, 1
    pp, copies, shards, cp, tp, *theirs = sizes
    experts = (theirs[0] * theirs[1], *theirs[2:]) if theirs else ()
    return (pp, copies * shards, cp, tp, *experts), copies


def _matrices(question: PlanQuestion, sizes: AxisSizes, copies: int, path: Sequence[str]) -> int:
    rows = rows_of(path, AXES)
    return _divided_count(question.topology.sizes, sizes, question.rules, rows, copies)


def _pairs(question: PlanQuestion, sizes: AxisSizes, copies: int, path: Sequence[str]) -> int:
    """Pairs of matrices of these sizes: of each row of pp those of attention times of experts.

    The last row of attention follows from the others: its first ones stand before those of experts.
    Where ranks are numbered once, a matrix of attention stands for the pair that it leaves, if any.
    """
    levels, own = question.topology.sizes, len(AXES) - 1
    if question.numbered_once:
        ruled = tuple(rule for rule in question.rules if rule.axis < len(AXES))
        return _divided_count(levels, sizes[: own + 1], ruled, rows_of(path, AXES), copies)
    rows = rows_of(path[:own], AXES)
    others = rows_of(path[own:], EXPERT_AXES[1:])
    attention = [rule for rule in question.rules if rule.axis < len(AXES)]
    experts = [
        replace(rule, axis=max(0, rule.axis - own))
        for rule in question.rules
        if not 0 < rule.axis < len(AXES)
    ]
    theirs = (sizes[0], *sizes[own + 1 :])
    total = 0
    for stages in rows[:1] or _splits(sizes[0], levels):
        mine = _divided_count(levels, sizes[: own + 1], attention, rows or (stages,), copies)
        if mine:
            total += mine * _divided_count(levels, theirs, experts, (stages, *others), copies)
    return total


def _divided_count(
    levels: Sequence[int],
    sizes: AxisSizes,
    rules: Sequence[AxisRule | FixedEntry],
    rows: tuple[Entries, ...],
    copies: int,
) -> int:
    """The number of matrices with these first rows whose second row is copies outside of shards."""
    if copies == 1:
        return matrix_count(levels, sizes, rules, rows)
    total = 0
    for row in rows[1:2] or _splits(sizes[1], levels):
        if _has_outside(row, copies):
            entries = [FixedEntry(1, level, part) for level, part in enumerate(row)]
            total += matrix_count(levels, sizes, [*rules, *entries], rows)
    return total


def _has_outside(row: Entries, copies: int) -> bool:
    """Whether whole outer parts of a row, and a divisor of the next, multiply to so many."""
    outside = 1
    for part in row:
        if copies % (outside * part):
            return part % (copies // outside) == 0
        outside *= part
    return outside == copies


def _splits(size: int, levels: Sequence[int]) -> Iterator[Entries]:
    """Every row of an axis: parts of the levels whose product is its size."""
    if not levels:
        yield from [()] * (size == 1)
        return
    for part in range(1, min(size, levels[0]) + 1):
        if size % part == 0 and levels[0] % part == 0:
            yield from ((part, *rest) for rest in _splits(size // part, levels[1:]))


def rows_of(decisions: Sequence[str], names: Sequence[str]) -> tuple[Entries, ...]:
    """The rows that decisions stand for, of the first axes in their order.

    Raises:
        InputError: one is no row of its axis, or is not written in the one way that there is, so
            that a cube would have two names.
    """
    if len(decisions) > len(names):
        raise InputError(f"a cube of {len(decisions)} rows", f"there are {len(names)} axes")
    rows = tuple(_numbers(one.partition(":")[2]) for one in decisions)
    for decision, name, row in zip(decisions, names, rows, strict=False):
        if decision != f"{name}:{','.join(map(str, row))}":
            raise InputError(f"decision {decision[:60]!r}", f"is no row of {name}")
    return rows


def sizes_of(decision: str, axes: Sequence[str] = AXES) -> AxisSizes:
    """The sizes that a decision such as ``pp=1,dp=64,cp=1,tp=8`` stands for.

    Raises:
        InputError: it is none, or is written in another way.
    """
    sizes = _numbers(",".join(part.partition("=")[2] for part in decision.split(",")))
    pairs = zip(axes, sizes, strict=False)
    if decision != ",".join(f"{axis}={size}" for axis, size in pairs) or len(sizes) != len(axes):
        raise InputError(f"decision {decision[:60]!r}", f"is no size of each of {', '.join(axes)}")
    return sizes


def _numbers(text: str) -> Entries:
    """The whole numbers of a text like ``8,4``; none where one is not."""
    parts = text.split(",")
    whole = all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts)
    return tuple(map(int, parts)) if whole else ()
