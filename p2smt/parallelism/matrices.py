"""Every placement matrix of some axes: counted for all sizes at once, listed for one.

A matrix has a row per axis and a column per level (:mod:`p2smt.parallelism.placement`).  A column
is an ordered factorisation of the size of its level; which columns go together is known from the
products of the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from p2smt.parallelism.placement import AxisRule, FixedEntry, IntArray

PlacementRules = Sequence[AxisRule | FixedEntry]


@lru_cache(maxsize=4096)
def factorisations(size: int, parts: int) -> tuple[tuple[int, ...], ...]:
    """Every way to write a size as a product of so many factors, in lexicographic order."""
    if parts == 1:
        return ((size,),)
    return tuple(
        (first, *rest)
        for first in divisors(size)
        for rest in factorisations(size // first, parts - 1)
    )


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """The divisors of a number, ascending."""
    found, left, prime = [1], number, 2
    while left > 1:
        if prime * prime > left:
            prime = left
        powers = [1]
        while left % prime == 0:
            left //= prime
            powers.append(powers[-1] * prime)
        found = [d * power for d in found for power in powers]
        prime += 1
    return tuple(sorted(found))


@lru_cache(maxsize=4096)
def count_matrices(
    levels: tuple[int, ...], axes: int, rules: tuple[AxisRule | FixedEntry, ...] = ()
) -> Mapping[tuple[int, ...], int]:
    """How many matrices there are for each product of rows that has some, under the rules."""
    found = Counter({(1,) * axes: 1})
    for j, columns in enumerate(_columns(levels, axes, rules)):
        across = [r.axis for r in rules if _is_across(r) and r.level == j]
        longer: Counter[tuple[int, ...]] = Counter()
        for product, count in found.items():
            for column in columns:
                here = tuple(a * b for a, b in zip(product, column, strict=True))
                if all(here[i] > 1 for i in across):
                    longer[here] += count
        found = longer
    return found


def matrices(levels: Sequence[int], sizes: Sequence[int], rules: PlacementRules = ()) -> IntArray:
    """Every matrix of axes of these sizes under the rules: shape (matrices, axes, levels).

    In lexicographic order of the rows.
    """
    left = np.array([sizes], dtype=np.int64)
    found = np.empty((1, len(sizes), 0), dtype=np.int64)
    for j, columns in enumerate(_columns(levels, len(sizes), rules)):
        column = np.array(columns, dtype=np.int64).reshape(-1, len(sizes))
        fits = (left[:, None, :] % column == 0).all(axis=2)
        at, chosen = np.nonzero(fits)
        left = left[at] // column[chosen]
        found = np.concatenate([found[at], column[chosen][:, :, None]], axis=2)
        for rule in rules:
            if _is_across(rule) and rule.level == j:
                keep = left[:, rule.axis] < sizes[rule.axis]
                left, found = left[keep], found[keep]
    whole = np.flatnonzero((left == 1).all(axis=1))
    keys = found[whole].reshape(len(whole), found.shape[1] * found.shape[2])
    order = np.lexsort(keys.T[::-1])
    return np.asarray(found[whole[order]], dtype=np.int64)


def _columns(
    levels: Sequence[int], axes: int, rules: PlacementRules
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """The columns that the rules allow at each level."""
    for j, size in enumerate(levels):
        yield tuple(
            column
            for column in factorisations(size, axes)
            if all(_allows(rule, j, column[rule.axis]) for rule in rules)
        )


def _allows(rule: AxisRule | FixedEntry, level: int, entry: int) -> bool:
    if isinstance(rule, FixedEntry):
        return rule.level != level or entry == rule.value
    return not rule.inside or level > rule.level or entry == 1


def _is_across(rule: AxisRule | FixedEntry) -> bool:
    return isinstance(rule, AxisRule) and not rule.inside
