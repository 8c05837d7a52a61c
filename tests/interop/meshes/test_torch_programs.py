"""Exported torch.distributed programs, on real processes over Gloo, against exact integer sums."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2smt.interop.meshes.programs.torch_writer import write_torch
from p2smt.interop.places import by_host
from tests.cli.tools import EVERY_KIND, TINY
from tests.interop.meshes.cases import check_all, exported, run_over_gloo
from tests.interop.meshes.plans import every_program, on_hosts, solved, three_levels, with_programs

AT_ONCE = 30
"""Requests of one plan: few enough for its file."""


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.exhaustive
def test_programs_of_every_class(tmp_path: Path) -> None:
    plan = three_levels(tmp_path)
    asked = every_program(tmp_path, 24)
    cases = []
    for at in range(0, len(asked), AT_ONCE):
        changed = with_programs(plan, asked[at : at + AT_ONCE])
        cases += exported(tmp_path, changed, f"programs{at}", write_torch)
    assert {case["kind"] for case in cases} == {"all-reduce", "reduce-scatter", "all-gather"}
    run_over_gloo(tmp_path, 12, cases)
    check_all(tmp_path, cases, by_plan_rank=True)


@pytest.mark.exhaustive
@pytest.mark.cluster
def test_requests_of_every_kind(tmp_path: Path) -> None:
    """Also started host by host, where ranks have other numbers."""
    topology = tmp_path / "tiny.yaml"
    topology.write_text(TINY)
    plan = json.loads(Path(solved(tmp_path, str(topology), *EVERY_KIND)).read_text())
    cases = [
        *exported(tmp_path, plan, "planned", write_torch),
        *exported(tmp_path, plan, "blocks", write_torch, by_host),
    ]
    assert {case["kind"] for case in cases} >= {"send", "all-to-all"}
    planned, blocks = cases[0]["launched"], cases[-1]["launched"]
    assert planned == sorted(planned)
    assert planned != blocks
    run_over_gloo(tmp_path, 8, cases)
    check_all(tmp_path, cases)


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("axes", ["tp=2,dp=6", "dp=12", "dp=6,tp=2"])
def test_programs_on_unequal_groups(tmp_path: Path, axes: str) -> None:
    """Of hosts as a scheduler hands them out; also started host by host."""
    plan = on_hosts(tmp_path, axes, 9)
    assert plan["matrix"] is None
    cases = [
        *exported(tmp_path, plan, "planned", write_torch),
        *exported(tmp_path, plan, "blocks", write_torch, by_host),
    ]
    assert any("master" in case["program"] for case in cases)
    run_over_gloo(tmp_path, 12, cases)
    check_all(tmp_path, cases)
