"""What the presets advise where measured tables say what is true."""

from __future__ import annotations

import pytest

import p2smt
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import Solution

NOTHING = 1.001


def solved(preset: str, size: str, devices: int) -> Solution:
    """The answer to one all-reduce over all devices."""
    axes = p2smt.parse_axes(f"dp={devices}")
    return p2smt.solve(Problem(p2smt.load_topology(preset), axes, (p2smt.reduce(f"dp={size}"),)))


def claimed(found: Solution) -> float:
    """How many times as long the default layout takes, with one collective each."""
    assert found.best is not None
    assert found.default is not None
    return found.default.objective_s / found.best.objective_s


@pytest.mark.parametrize(
    ("preset", "size", "devices", "most"),
    [
        ("dgx-h100:2", "64KiB", 16, NOTHING),
        ("mi300x:2", "8GiB", 16, NOTHING),
        ("aws-p4d:2", "1GiB", 16, NOTHING),
        ("dgx-h100:4", "8KiB", 32, 1.1),
        ("aws-p5:2", "8GiB", 16, 1.1),
    ],
)
def test_no_gain_is_claimed_that_nobody_measures(
    preset: str, size: str, devices: int, most: float
) -> None:
    assert 1 <= claimed(solved(preset, size, devices)) <= most


def test_a_small_all_reduce_is_one_call() -> None:
    """By the links' latencies alone three calls of two nodes look 2.44 times as fast."""
    best = solved("dgx-h100:2", "64KiB", 16).best
    assert best is not None
    assert [str(one.program) for one in best.requests] == ["all-reduce inside root"]


def single_s(preset: str, matrix: tuple[tuple[int, ...], ...], payload: int) -> float:
    """One all-reduce along the first axis of a matrix."""
    scene = Scene.of(p2smt.load_topology(preset), Placement(matrix), (0,))
    return scene.fixed_time(RequestKind.ALL_REDUCE, payload).seconds


@pytest.mark.parametrize("preset", ["dgx-h100:1", "aws-p5:1"])
def test_eight_h100_are_hardly_faster_than_four(preset: str) -> None:
    """NVLS moves n(1 + 1/p) over the link of a device, whatever p is."""
    for power in range(10, 35):
        few, all_of_them = ((1, 4), (1, 2)), ((1, 8), (1, 1))
        ratio = single_s(preset, few, 2**power) / single_s(preset, all_of_them, 2**power)
        assert ratio <= 1.12, 2**power


@pytest.mark.parametrize(
    ("preset", "measured_ms"),
    [("mi300x:2", 45.0), ("gcp-a3-mega:2", 47.5), ("aws-p6-b200:2", 24.0), ("dgx-h100:2", 34.0)],
)
def test_two_nodes_are_not_slower_than_measured(preset: str, measured_ms: float) -> None:
    """8 GiB over two nodes of 8, published; rings alone took twice to four times as long."""
    found_ms = single_s(preset, ((2, 8),), 2**33) * 1e3
    assert measured_ms / 1.5 <= found_ms <= 1.25 * measured_ms
