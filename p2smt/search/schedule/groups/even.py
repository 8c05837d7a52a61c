"""Regular groups of fabrics whose ranks can be permuted at will, which are too many to list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import factorial, prod

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.cluster.fabric.maps.permutations import all_permutations, permuted
from p2smt.cluster.fabric.maps.symmetry import FabricSymmetry

MOST_IMAGES = 2**23
"""Images of edges, over all elements of a group."""


def even_groups(
    fabric: Fabric, fixed: Sequence[int], most: int, *, reversing: bool
) -> tuple[tuple[FabricSymmetry, ...], ...]:
    """Generators of groups that take each rank but ``fixed`` to each other by one element.

    First the shifts; then, where the number of ranks has several prime factors, the shifts of
    digits.  Where these have too many elements, some of them only.  Empty: the ranks cannot be
    permuted at will, or all permutations are ``most`` or fewer.
    """
    free = [rank for rank in range(fabric.ranks) if rank not in set(fixed)]
    if len(free) < 20 and factorial(len(free)) * (1 + reversing) <= most:
        return ()
    every = all_permutations(fabric, fixed, reversing=reversing)
    if not every:
        return ()
    turns = [one for one in every if one.reverses]
    most = min(most // (1 + reversing), MOST_IMAGES // len(fabric.edges))
    primes = list(_primes(len(free)))
    shapes = [[len(free)], primes] if len(primes) > 1 else [[len(free)]]
    groups = [_shifts(fabric, free, shape, most) for shape in shapes]
    return tuple((*group, *turns) for group in groups if group)


def _shifts(
    fabric: Fabric, free: Sequence[int], shape: Sequence[int], most: int
) -> list[FabricSymmetry]:
    """Shifts of the digits of numbers with so many values each, as far as they are ``most``."""
    found, order = [], 1
    for digit, size in enumerate(shape):
        step = next(n for n in range(1, size + 1) if size % n == 0 and order * size // n <= most)
        one = permuted(fabric, _cycles(free, size, prod(shape[digit + 1 :]), step))
        if step < size and one is not None:
            found.append(one)
            order *= size // step
    return found


def _cycles(free: Sequence[int], size: int, stride: int, step: int) -> list[list[int]]:
    """Cycles of the map that adds ``step`` to the digit of ``size`` values, worth ``stride``."""
    firsts = [n for n in range(len(free)) if n // stride % size < step]
    return [[free[n + stride * more] for more in range(0, size, step)] for n in firsts]


def _primes(number: int) -> Iterator[int]:
    """The prime factors, ascending."""
    factor = 2
    while number > 1:
        while number % factor == 0:
            yield factor
            number //= factor
        factor += 1
