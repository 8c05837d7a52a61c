"""The levels that groups of requests span, against the devices of every group."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.file import parse_topology
from p2smt.cluster.topology import Level
from p2smt.collectives.names import RequestKind
from p2smt.parallelism.placement import ParallelismAxis, Placement
from p2smt.parallelism.request import Problem, Request, spanned_levels
from tests.cli.tools import TINY
from tests.strategies.topologies import placements

TWO = parse_topology(TINY, "tiny")
ASKED = st.lists(st.sets(st.integers(0, 2), min_size=1), min_size=1, max_size=2)
"""The axes of each request, as far as there are so many."""


def spanned(problem: Problem, placement: Placement) -> list[str]:
    """By the definition: a group that has devices of two entities of the level."""
    found = []
    for j, name in enumerate(problem.topology.names):
        under = math.prod(placement.level_sizes[j + 1 :])
        groups = (placement.groups(problem.axis_indices(one)) for one in problem.requests)
        if any(len({*row}) > 1 for each in groups for row in (each // under).tolist()):
            found.append(name)
    return found


@settings(max_examples=200)
@given(placements(), ASKED)
def test_a_level_is_spanned_where_a_group_has_devices_of_two_of_its_entities(
    placement: Placement, asked: list[set[int]]
) -> None:
    axes = tuple(ParallelismAxis(f"a{i}", size) for i, size in enumerate(placement.axis_sizes))
    chosen = [sorted({min(i, len(axes) - 1) for i in one}) for one in asked]
    requests = tuple(
        Request(RequestKind.ALL_REDUCE, tuple(axes[i].name for i in one), 8) for one in chosen
    )
    levels = [Level(f"l{j}", n, TWO.levels[0].link) for j, n in enumerate(placement.level_sizes)]
    problem = Problem(replace(TWO, levels=tuple(levels)), axes, requests)
    assert spanned_levels(problem, placement) == spanned(problem, placement)


def test_the_innermost_level_alone_is_spanned_by_an_axis_inside_of_it() -> None:
    axes = (ParallelismAxis("dp", 2), ParallelismAxis("tp", 4))
    placement = Placement(((2, 1), (1, 4)))
    for name, levels in (("tp", ["gpu"]), ("dp", ["node", "gpu"])):
        problem = Problem(TWO, axes, (Request(RequestKind.ALL_REDUCE, (name,), 8),))
        assert spanned_levels(problem, placement) == levels
