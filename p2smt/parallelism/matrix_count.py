"""How many parallelism matrices there are: a formula that makes none of them.

Entries are products of primes, so a matrix is for each prime a table of exponents whose rows and
columns add up to those of the sizes, and the number of matrices is the product over the primes of
the numbers of such tables (contingency tables with given margins).  First rows that are given are
taken off the columns; rules on single entries fix exponents; that an axis is *not* inside a level
is all tables less those where it is (inclusion and exclusion).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations

from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, FixedEntry

Fixed = Mapping[tuple[int, int], int]
"""Entries that are given, by axis and level."""


def matrix_count(
    levels: Sequence[int],
    axes: Sequence[int],
    rules: Sequence[AxisRule | FixedEntry] = (),
    rows: Sequence[Sequence[int]] = (),
) -> int:
    """The number of matrices with these sizes that obey the rules and begin with these rows.

    Raises:
        InputError: more rows than axes, or one that has not an entry per level.
    """
    if len(rows) > len(axes) or any(len(row) != len(levels) for row in rows):
        raise InputError(f"rows {list(map(list, rows))}", "are none of a matrix of these sizes")
    given = [((i, j), entry) for i, row in enumerate(rows) for j, entry in enumerate(row)]
    given += [((r.axis, r.level), r.value) for r in rules if isinstance(r, FixedEntry)]
    inside = [r for r in rules if isinstance(r, AxisRule) and r.inside]
    outside = [r for r in rules if isinstance(r, AxisRule) and not r.inside]
    total = 0
    for size in range(len(outside) + 1):
        for broken in combinations(outside, size):
            ones = [((r.axis, j), 1) for r in (*inside, *broken) for j in range(r.level + 1)]
            total += (-1) ** size * _with_entries(levels, axes, [*given, *ones])
    return total


def _with_entries(
    levels: Sequence[int], axes: Sequence[int], given: Sequence[tuple[tuple[int, int], int]]
) -> int:
    """The number of matrices with these entries."""
    fixed = dict(given)
    if any(fixed[cell] != entry or entry < 1 for cell, entry in given):
        return 0
    if math.prod(levels) != math.prod(axes):
        return 0
    if any(levels[j] % entry for (_, j), entry in fixed.items()):
        return 0
    primes = {prime for size in levels for prime in _primes(size)}
    return math.prod(_of_prime(prime, levels, axes, fixed) for prime in primes)


def _of_prime(prime: int, levels: Sequence[int], axes: Sequence[int], fixed: Fixed) -> int:
    """The number of tables of one prime's exponents."""
    sums = [_exponent(size, prime) for size in axes]
    entries = {cell: _exponent(entry, prime) for cell, entry in fixed.items()}
    loose = max((i for i, _ in entries), default=-1) + 1  # from this row on all entries are free

    @cache
    def tables(row: int, columns: tuple[int, ...]) -> int:
        if row == len(sums):
            return int(not any(columns))
        total = 0
        for taken in _ways(row, sums[row], columns, 0, entries):
            left = (have - used for have, used in zip(columns, taken, strict=True))
            total += tables(row + 1, tuple(sorted(left) if row + 1 >= loose else left))
        return total

    return tables(0, tuple(_exponent(size, prime) for size in levels))


def _ways(
    row: int, total: int, columns: tuple[int, ...], level: int, entries: Fixed
) -> Iterator[tuple[int, ...]]:
    """The exponents of a row, from a level on: they add up, and no column is exceeded."""
    if level == len(columns):
        if not total:
            yield ()
        return
    known = entries.get((row, level))
    most = min(total, columns[level])
    for exponent in range(most + 1) if known is None else (known,) if known <= most else ():
        for others in _ways(row, total - exponent, columns, level + 1, entries):
            yield (exponent, *others)


def _exponent(number: int, prime: int) -> int:
    count = 0
    while number % prime == 0:
        number, count = number // prime, count + 1
    return count


def _primes(number: int) -> Iterator[int]:
    """The distinct primes of a positive integer, by trial division."""
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            yield divisor
        while number % divisor == 0:
            number //= divisor
        divisor += 1
    if number > 1:
        yield number
