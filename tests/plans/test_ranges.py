"""What the range of a step is looked up by, against the groups device by device."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import p2smt
from p2smt.cluster.file import load_topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.accuracy import (
    PricedStep,
    most_in_node,
    outermost_crossed,
    price_range,
    summed,
)
from p2smt.cost.bounds import single_time
from p2smt.parallelism.placement import Placement, default_ranks, rank_groups
from p2smt.parallelism.request import Problem
from p2smt.plans.given_program import cost_of
from p2smt.plans.ranges import range_of, range_of_order, range_of_step

CLUSTER = load_topology("dgx-h100:2")
AXES = p2smt.parse_axes("dp=8,tp=2")
KINDS = (p2smt.reduce, p2smt.all_to_all, p2smt.send)


@given(st.permutations(range(16)), st.sampled_from(RequestKind), st.integers(0, 1))
def test_a_step_is_of_the_outermost_level_that_its_groups_cross(
    devices: list[int], kind: RequestKind, axis: int
) -> None:
    ranks = np.array(devices).reshape(8, 2)
    groups = rank_groups(ranks, [axis])
    level, local = outermost_crossed(CLUSTER, groups), most_in_node(CLUSTER, groups)
    assert local == max(np.bincount(row // 8).max() for row in groups)
    step = single_time(CLUSTER, ranks, [axis], kind, 2**24)
    assert level is not None
    expected = price_range(CLUSTER, PricedStep(kind.value, 2**24, step.seconds, level, local))
    assert range_of_step(CLUSTER, kind.value, step, local) == expected


@given(
    st.sampled_from(((4, 2, 1, 4), (8, 1, 1, 8), (2, 4, 2, 2), (1, 8, 4, 1))),
    st.sampled_from(KINDS),
)
def test_a_matrix_and_its_ranks_have_one_range(entries: tuple[int, ...], kind: object) -> None:
    """Levels and members by the hierarchy, and by the groups themselves."""
    request = kind("dp=64MiB*3")  # type: ignore[operator]
    topology = CLUSTER.with_outermost(entries[0] * entries[2])
    sizes = f"dp={entries[0] * entries[1]},tp={entries[2] * entries[3]}"
    problem = Problem(topology, p2smt.parse_axes(sizes), (request,))
    placement = Placement((entries[:2], entries[2:]))
    found = cost_of(problem, placement)
    ranks = placement.rank_tensor()
    step = single_time(topology, ranks, [0], request.kind, request.payload_bytes)
    by_ranks = range_of_order(problem, ranks, [step])
    by_matrix = range_of(problem, found)
    assert by_ranks is not None
    assert by_matrix is not None
    assert (by_matrix.low_s, by_matrix.high_s) == (by_ranks.low_s, by_ranks.high_s)
    assert (by_matrix.basis, by_matrix.why) == (by_ranks.basis, by_ranks.why)


def test_an_iteration_has_every_execution() -> None:
    request = p2smt.reduce("dp=64MiB*3")
    one = p2smt.reduce("dp=64MiB")
    ranks = default_ranks((8, 2))
    step = single_time(CLUSTER, ranks, [0], request.kind, request.payload_bytes)
    whole, alone, both = (
        range_of_order(Problem(CLUSTER, AXES, asked), ranks, [step] * len(asked))
        for asked in ((request,), (one,), (request, one))
    )
    assert whole is not None
    assert alone is not None
    assert whole == alone.times(3)
    assert both == summed([whole, alone])
