"""Matrices known before any search: rank orders that a matrix expresses, and axes packed in order.

A packed matrix gives the innermost level to the first axis of an order, as far as sizes divide,
then to the second, and so outwards; among them are the layouts of frameworks that name their axes
from the innermost (such as Megatron's tp-cp-ep-dp-pp).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice, permutations, product

from p2smt.parallelism.expressed import matrix_of
from p2smt.parallelism.placement import IntArray, Matrix
from p2smt.parallelism.request import Problem
from p2smt.search.placements import obeys

MAX_ORDERS = 720
"""All orders of 6 axes; of more axes those that keep the heaviest ones inside."""


def packed(levels: Sequence[int], axes: Sequence[int], order: Sequence[int]) -> Matrix:
    """The matrix that packs the axes in this order (first innermost); ``order`` may leave out 1s.

    What divides a level's rest goes there; the products being equal, nothing is left over.
    """
    left = list(axes)
    rows = [[1] * len(levels) for _ in axes]
    for j in reversed(range(len(levels))):
        free = levels[j]
        for axis in order:
            rows[axis][j] = math.gcd(left[axis], free)
            left[axis] //= rows[axis][j]
            free //= rows[axis][j]
    return tuple(tuple(row) for row in rows)


def start_matrices(problem: Problem, orders: Sequence[IntArray]) -> tuple[Matrix, ...]:
    """Different matrices that obey the rules: those of rank orders first, then packed ones."""
    levels = problem.topology.sizes
    given = [matrix_of(ranks, levels) for ranks in orders]
    found = dict.fromkeys(matrix for matrix in given if matrix is not None)
    for order in islice(permutations(_heaviest_first(problem)), MAX_ORDERS):
        found[packed(levels, problem.axis_sizes, order)] = None
    return tuple(matrix for matrix in found if obeys(matrix, problem.rules))


def _heaviest_first(problem: Problem) -> list[int]:
    """Axes of more than one rank by the bytes of their requests, the heaviest first."""
    weight = {i: 0 for i, size in enumerate(problem.axis_sizes) if size > 1}
    for request in problem.requests:
        for i in set(problem.axis_indices(request)) & set(weight):
            weight[i] += request.payload_bytes * request.times
    return sorted(weight, key=lambda i: -weight[i])


def neighbours(problem: Problem, matrix: Matrix) -> Iterator[Matrix]:
    """Matrices that obey the rules and differ by two axes exchanging a prime between two levels."""
    axes, levels = range(len(matrix)), range(len(matrix[0]))
    for a, b, j, k in product(axes, axes, levels, levels):
        if a < b and j != k:
            for prime in _primes(math.gcd(matrix[a][j], matrix[b][k])):
                rows = [list(row) for row in matrix]
                rows[a][j], rows[a][k] = rows[a][j] // prime, rows[a][k] * prime
                rows[b][k], rows[b][j] = rows[b][k] // prime, rows[b][j] * prime
                found = tuple(tuple(row) for row in rows)
                if obeys(found, problem.rules):
                    yield found


def _primes(number: int) -> Iterator[int]:
    divisor = 2
    while number > 1:
        if number % divisor == 0:
            yield divisor
            while number % divisor == 0:
                number //= divisor
        divisor += 1
