"""Small problems, and what a cube holds by brute force."""

from __future__ import annotations

from itertools import product
from math import prod

from hypothesis import strategies as st

from p2smt.cluster.topology import Topology
from p2smt.parallel_search.subproblem import Member, Subproblem
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix, Placement
from p2smt.search.placements import obeys
from tests.strategies.clusters import switches

LEVELS = [(4,), (2, 4), (2, 2, 3), (4, 6), (2, 2, 2)]


class Quiet:
    """Signals of a search of which nothing is heard."""

    def stopped(self) -> bool:
        return False

    def cutoff(self) -> Member | None:
        return None


def cluster(sizes: tuple[int, ...]) -> Topology:
    """Each level ten times as fast as the one outside it."""
    levels = [(f"l{j}", size, 10.0 ** (9 + j)) for j, size in enumerate(sizes)]
    return switches(*levels, latency_s=2e-6)


def axes_of(devices: int) -> list[tuple[int, ...]]:
    """Every way to write a number of devices as sizes of two or three axes."""
    divisors = [n for n in range(1, devices + 1) if devices % n == 0]
    return [
        sizes for k in (2, 3) for sizes in product(divisors, repeat=k) if prod(sizes) == devices
    ]


@st.composite
def sizes_and_rules(
    draw: st.DrawFn,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[AxisRule | FixedEntry, ...]]:
    """Levels, axes and up to two rules on them."""
    levels = draw(st.sampled_from(LEVELS))
    axes = draw(st.sampled_from(axes_of(prod(levels))))
    axis, level = st.integers(0, len(axes) - 1), st.integers(0, len(levels) - 1)
    rule = st.one_of(
        st.builds(AxisRule, axis, level, st.booleans()),
        st.builds(FixedEntry, axis, level, st.sampled_from([1, 2, 4])),
    )
    return levels, axes, tuple(draw(st.lists(rule, max_size=2)))


def every_matrix(
    levels: tuple[int, ...], axes: tuple[int, ...], rules: tuple[AxisRule | FixedEntry, ...] = ()
) -> list[Matrix]:
    """All matrices of these sizes under rules, entry by entry."""
    rows = [
        [row for row in product(*(range(1, n + 1) for n in levels)) if prod(row) == size]
        for size in axes
    ]
    return [
        matrix
        for matrix in product(*rows)
        if Placement(matrix).level_sizes == levels and obeys(matrix, rules)
    ]


def holds(cube: Subproblem, matrix: Matrix, before: int = 0) -> bool:
    """Whether a matrix is in a cube, read off the text of its decisions after the first ones."""
    rows = [text.split(":")[1] for text in cube.path[before:]]
    return [",".join(map(str, row)) for row in matrix[: len(rows)]] == rows
