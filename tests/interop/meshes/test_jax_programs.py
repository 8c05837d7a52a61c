"""Exported JAX programs, on forced host devices, against exact integer sums."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.interop.meshes.programs.jax_writer import write_jax
from p2smt.interop.places import by_host
from tests.cli.tools import EVERY_KIND, TINY
from tests.interop.meshes.cases import check_all, exported, run_on_host_devices
from tests.interop.meshes.plans import every_program, on_hosts, solved, three_levels, with_programs

pytest.importorskip("jax")


@pytest.mark.exhaustive
@pytest.mark.slow
def test_programs_of_every_class(tmp_path: Path) -> None:
    """Those that JAX cannot express are the ones that scatter or gather among masters."""
    plan = three_levels(tmp_path)
    cases = []
    for number, one in enumerate(every_program(tmp_path, 10)):
        changed = with_programs(plan, [one])
        masters = any(
            step.startswith(("reduce-scatter master", "all-gather master"))
            for step in one["program"].split("; ")
        )
        if masters:
            with pytest.raises(InputError, match=r"step \d \((all-gather|reduce-scatter) master"):
                exported(tmp_path, changed, f"program{number}", write_jax)
            continue
        cases += exported(tmp_path, changed, f"program{number}", write_jax)
    run_on_host_devices(tmp_path, 12, cases)
    check_all(tmp_path, cases, by_plan_rank=True)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_requests_of_every_kind(tmp_path: Path) -> None:
    topology = tmp_path / "tiny.yaml"
    topology.write_text(TINY)
    plan = json.loads(Path(solved(tmp_path, str(topology), *EVERY_KIND)).read_text())
    cases = [
        *exported(tmp_path, plan, "planned", write_jax),
        *exported(tmp_path, plan, "blocks", write_jax, by_host),
    ]
    run_on_host_devices(tmp_path, 8, cases)
    check_all(tmp_path, cases, by_plan_rank=True)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_programs_on_unequal_groups(tmp_path: Path) -> None:
    """A sum may be over groups of several sizes."""
    plan = on_hosts(tmp_path, "dp=12", 6)
    cases, refused = [], []
    for number, request in enumerate(plan["requests"]):
        one = {**plan, "requests": [request]}
        try:
            cases += exported(tmp_path, one, f"program{number}", write_jax)
        except InputError as error:
            refused.append(str(error))
    assert all("JAX scatters and gathers only over groups of one size" in one for one in refused)
    assert any("inside leaf" in case["program"] for case in cases)
    run_on_host_devices(tmp_path, 12, cases)
    check_all(tmp_path, cases, by_plan_rank=True)
