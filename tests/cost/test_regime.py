"""Which part of a request's time is the largest, and that the parts make up all of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import p2smt
from p2smt.cost.regime import CARDS, LATENCY, NODE_LINKS, level_regime, regime, regime_parts
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import program_s
from p2smt.parallelism.placement import Placement
from p2smt.programs.program import parse_program
from tests.strategies.clusters import switches
from tests.strategies.topologies import Case, cases

THREE = switches(
    ("pod", 2, 1e9, "infiniband"), ("node", 4, 1e9, "infiniband"), ("gpu", 8, 1e11, "nvlink4")
)


def regime_of(topology: p2smt.Topology, matrix: tuple[tuple[int, ...], ...], size: str) -> str:
    """Of one all-reduce over the first axis."""
    names = [f"a{i}" for i in range(len(matrix))]
    axes = ",".join(f"{n}={s}" for n, s in zip(names, Placement(matrix).axis_sizes, strict=True))
    problem = p2smt.Problem(topology, p2smt.parse_axes(axes), (p2smt.reduce(f"a0={size}"),))
    (answer,) = p2smt.cost_of(problem, Placement(matrix), [None]).requests
    return str(regime(topology, answer.steps, answer.chunks))


@pytest.mark.parametrize(
    ("matrix", "size", "expected"),
    [
        (((1, 1, 8), (2, 4, 1)), "1GiB", NODE_LINKS),
        (((1, 4, 1), (2, 1, 8)), "1GiB", CARDS),
        (((2, 1, 1), (1, 4, 8)), "1GiB", "pod"),
        (((1, 4, 1), (2, 1, 8)), "4B", LATENCY),
        (((1, 1, 1), (2, 4, 8)), "1GiB", "None"),
    ],
)
def test_the_regime_is_the_level_that_is_waited_for(
    matrix: tuple[tuple[int, ...], ...], size: str, expected: str
) -> None:
    assert regime_of(THREE, matrix, size) == expected


def test_levels_are_told_apart_by_the_fabrics_that_join_nodes() -> None:
    assert [level_regime(THREE, j) for j in range(3)] == ["pod", CARDS, NODE_LINKS]
    plain = switches(("node", 4, 1e9, ""), ("gpu", 8, 1e11, ""))
    assert [level_regime(plain, j) for j in range(2)] == [CARDS, NODE_LINKS]
    assert level_regime(switches(("gpu", 8, 1e11, "")), 0) == NODE_LINKS
    islands = switches(
        ("node", 2, 1e9, "ethernet"), ("numa", 2, 1e10, "pcie"), ("gpu", 2, 1e11, "")
    )
    assert [level_regime(islands, j) for j in range(3)] == [CARDS, NODE_LINKS, NODE_LINKS]


def test_many_small_hops_are_latency_though_each_link_is_slow() -> None:
    """Of 2 x 31 hops of 100 us beside 1 ms of bytes, 6.2 ms are latency."""
    topology = switches(("node", 32, 1e9, "ethernet"), ("gpu", 1, 1e9, "nvlink4"), latency_s=1e-4)
    ring = topology.running((p2smt.Algorithm.RING,))
    assert regime_of(ring, ((32, 1),), "500kB") == LATENCY
    assert regime_of(ring, ((32, 1),), "50MB") == CARDS


@given(cases(), st.sampled_from([1, 1000, 2**30]), st.sampled_from([1, 2, 8]))
def test_the_parts_make_up_the_time(case: Case, payload: int, chunks: int) -> None:
    scene = Scene.of(case.topology, case.placement, case.axes)
    if scene.hierarchy.size == 1:
        return
    program = parse_program("reduce-scatter inside root; all-gather inside root")
    rows = (scene.hierarchy.size,) * 2
    steps = scene.program_times(program, rows, payload, chunks)
    parts = regime_parts(case.topology, steps, chunks)
    assert sum(parts.values()) == pytest.approx(program_s(steps, chunks), rel=1e-9)
    assert regime(case.topology, steps, chunks) in (*parts, None)
