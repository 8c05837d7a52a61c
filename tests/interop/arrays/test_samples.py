"""Cases of the common JSON form: planned, checked, and never slower than what a peer does."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from p2smt.cluster.file import load_topology
from p2smt.cluster.trimmed import trimmed
from p2smt.interop.arrays.peers.compare_peers import compare_peers
from p2smt.resharding.endpoints import ends_of
from p2smt.resharding.search import solve_redistribution
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import StepKind
from p2smt.result import Status
from tests.interop.arrays.samples import SampleCase, read_sample

FOLDER = Path(__file__).parent / "sample_cases"
CASES = [read_sample(path) for path in sorted(FOLDER.glob("*.json"))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_planned_and_never_slower_than_a_peer(case: SampleCase) -> None:
    topology = trimmed(load_topology("azure-ndv4:2").nominal(), {"gpu": case.source.mesh.size // 2})
    plan = solve_redistribution(case.source, case.target, topology)
    assert plan.status is Status.OPTIMAL
    assert plan.states[-1].order == plan.frame.orders.index(case.target.mesh.devices)
    if "shardy" in case.peer:
        ends = ends_of(case.source, case.target)[0]
        steps, prices = case.shardy_steps(ends), StepPrices(topology, ends.frame)
        assert steps[-1].after == ends.target
        seconds = sum(prices.step(step).seconds for step in steps)
        assert plan.objective_s <= seconds * (1 + 1e-9)
    if find_spec("torch") is None:
        return
    for row in compare_peers(plan, ["dtensor"]):
        if row.seconds is not None and not row.over_cap:
            assert plan.objective_s <= row.seconds * (1 + 1e-9)
        if row.name == "dtensor greedy" and "dtensor_comm_count" in case.peer:
            sent = [step for step in row.steps if step.kind is not StepKind.SLICE]
            assert len(sent) == case.peer["dtensor_comm_count"]
