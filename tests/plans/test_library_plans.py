"""Plans on a topology that a library runs on: bounds of fixed steps, and the order of ranks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import p2smt
from p2smt.collectives.names import RequestKind
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem
from p2smt.plans.file import plan_data
from p2smt.plans.solution import Solution, rank_alternative
from p2smt.result import SolveStats, Status
from tests.cli.tools import cli

LIBRARIES = ["nccl-2.30", "gloo"]
CALL_S = 1e-3


def asked(library: str) -> Problem:
    """Fixed steps of every kind, and one request with programs; calls cost a millisecond."""
    requests = (
        p2smt.reduce("dp=64KiB"),
        p2smt.all_to_all("tp=1MiB"),
        p2smt.send("dp=1MiB"),
        p2smt.all_gather("tp=1MiB"),
    )
    calls = tuple((kind.value, CALL_S) for kind in RequestKind)
    topology = replace(p2smt.load_topology("dgx-h100:2").under(library), calls=calls)
    return Problem(topology, p2smt.parse_axes("dp=8,tp=2"), requests)


def verified(found: Solution, folder: Path) -> object:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan_data(found, found.alternatives[0])))
    return cli("verify", str(path), "--json").json()


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_solve_writes_is_valid(library: str, tmp_path: Path) -> None:
    found = p2smt.solve(asked(library))
    assert found.best is not None
    for answer in found.best.requests[1:3]:
        assert 0 < answer.physical_bound_s < answer.seconds - CALL_S
        assert answer.bound_s == answer.seconds
    data = verified(found, tmp_path)
    assert isinstance(data, dict)
    assert (data["verdict"], data["violations"]) == ("valid", [])


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_rank_list_is_valid(library: str, tmp_path: Path) -> None:
    problem = asked(library)
    ranks = RankList(tuple(reversed(range(16))), problem.axis_sizes)
    alternative = rank_alternative(problem, ranks)
    for answer in alternative.requests[1:3]:
        assert 0 < answer.physical_bound_s < answer.seconds - CALL_S
    found = Solution(
        problem, Status.FEASIBLE, (alternative,), 0.0, 0.0, Status.TRUNCATED, SolveStats("cpsat")
    )
    data = verified(found, tmp_path)
    assert isinstance(data, dict)
    assert (data["verdict"], data["violations"]) == ("valid", [])


def test_ranks_that_alternate_cost_a_strict_library_every_crossing() -> None:
    """Two nodes of 8 with one card: 16 ranks that alternate leave a node 8 times, not once."""
    topology = p2smt.load_topology("dgx-h100:2")
    card = replace(topology.levels[0].link, ports=1, fabric="ethernet")
    levels = (replace(topology.levels[0], link=card), *topology.levels[1:])
    problem = Problem(
        replace(topology, levels=levels), p2smt.parse_axes("dp=16"), (p2smt.reduce("dp=1GiB"),)
    )
    alternating = tuple(8 * (i % 2) + i // 2 for i in range(16))

    def wire_s(library: str, order: tuple[int, ...]) -> float:
        chosen = replace(problem, topology=problem.topology.under(library))
        (answer,) = rank_alternative(chosen, RankList(order, (16,))).requests
        return answer.steps[0].wire_s

    device_order = tuple(range(16))
    assert wire_s("gloo", alternating) == pytest.approx(8 * wire_s("gloo", device_order))
    assert wire_s("nccl-2.30", alternating) == pytest.approx(wire_s("nccl-2.30", device_order))
    spread = tuple(8 * (i // 2 % 2) + i // 4 * 2 + i % 2 for i in range(16))
    assert wire_s("gloo", spread) == pytest.approx(4 * wire_s("gloo", device_order))
