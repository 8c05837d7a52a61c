"""What an answer is tried on: bandwidths, and under a library the cost of a call."""

from __future__ import annotations

from dataclasses import replace

import pytest

import p2smt
from p2smt.cluster.topology import Topology
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.plans.solution import Perturbation
from p2smt.programs.program import Grouping
from p2smt.report.solution_tables import sensitivity
from p2smt.report.tables import console
from p2smt.result import Status
from p2smt.search.sensitivity import CALL_FACTORS, FACTORS, changes
from tests.search.solve.test_solve import cluster, problem


def test_without_a_library_bandwidths_alone_are_changed() -> None:
    found = changes(cluster())
    assert [(case.level, case.factor) for case in found] == [
        (level, factor) for level in ("node", "gpu") for factor in FACTORS
    ]
    for case in found:
        changed = [
            case.factor if level.name == case.level else 1.0 for level in case.topology.levels
        ]
        rates = [level.link.bandwidth_bytes_per_s for level in cluster().levels]
        now = [level.link.bandwidth_bytes_per_s for level in case.topology.levels]
        assert now == pytest.approx([f * rate for f, rate in zip(changed, rates, strict=True)])


def test_under_a_library_the_cost_of_a_call_is_changed_too() -> None:
    topology = cluster().under("gloo")
    *_, low, high = changes(topology)
    assert (len(changes(topology)), low.level, high.level) == (6, None, None)
    assert (low.factor, high.factor) == CALL_FACTORS
    assert low.topology == replace(topology, call_factor=0.5)
    assert high.topology.with_call_factor(2.0) == replace(topology, call_factor=3.0)


def test_a_call_costs_so_many_times_as_much() -> None:
    topology = p2smt.load_topology("dgx-h100:2")
    assert call_s(topology.with_call_factor(1.5)) == pytest.approx(1.5 * call_s(topology))


def call_s(topology: Topology) -> float:
    """What one all-reduce over all devices pays for its call."""
    scene = Scene.of(topology, Placement(((2, 8),)), (0,))
    return scene.step_time(p2smt.Collective.ALL_REDUCE, Grouping(0, 2), 1024).call_s


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_out_of_range_is_refused(factor: float) -> None:
    with pytest.raises(InputError, match="must be positive and finite"):
        cluster().with_call_factor(factor)


def test_each_change_is_solved_again() -> None:
    found = p2smt.solve(problem("dp=1MiB", "tp=1MiB*100"), sensitivity=True)
    assert [(case.level, case.factor) for case in found.sensitivity] == [
        (case.level, case.factor) for case in changes(cluster())
    ]
    assert not found.interrupted
    assert {case.what for case in found.sensitivity} == {"bandwidth"}


def test_calls_are_named_in_the_table() -> None:
    cases = [
        Perturbation("node", 0.8, 1.0, 1.0, Status.OPTIMAL),
        Perturbation(None, 1.5, 1.2, 1.0, Status.OPTIMAL),
    ]
    assert [case.what for case in cases] == ["bandwidth", "call"]
    screen = console()
    with screen.capture() as captured:
        screen.print(*sensitivity(cases), sep="\n")
    lines = [" ".join(line.split()) for line in captured.get().splitlines()]
    assert lines[0] == "if the bandwidth of a level, or the cost of a call, is off"
    assert "cost of a call x 1.5 1.2 s 1 s no, 20 % slower" in lines
    assert "node x 0.8 1 s 1 s yes" in lines
