"""What plans of two matrices are exported to: where ranks lie, both meshes, or one line why not."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from p2smt.interop.exports import WRITERS
from p2smt.interop.frameworks import write_device_mesh, write_jax_mesh
from p2smt.interop.meshes.tensor import numbered
from p2smt.interop.places import PlacedPlan, by_host, placed
from p2smt.plans.file_model import PlanModel
from tests.cli.tools import cli
from tests.training.test_folded_plans import FOLDED, data, planned

NAMES = {"attention": ["pp", "dp", "tp"], "experts": ["pp", "ep", "et"]}


@pytest.fixture(scope="module")
def plan() -> PlacedPlan:
    return placed(PlanModel.model_validate(data()), "plan")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("folded") / "plan.json"
    found.write_text(json.dumps(data()))
    return found


def groups_of(tensor: Any, names: list[str], axis: str) -> list[list[int]]:
    lines = np.moveaxis(np.array(tensor), names.index(axis), -1)
    return sorted(map(sorted, lines.reshape(-1, lines.shape[-1]).tolist()))


def groups_in_file(plan: PlacedPlan, side: str, axis: str) -> list[list[int]]:
    """The launched ranks of the groups that the file's steps along one axis have."""
    rank_of = {place.device: place.rank for place in plan.places}
    steps = [
        request["steps"][0]
        for request in data()["requests"]
        if (request["matrix"], request["axes"]) == (side, [axis])
    ]
    return sorted(sorted(rank_of[device] for device in group) for group in steps[0]["groups"])


@pytest.mark.parametrize("launched", ["as planned", "by host", "dp,pp,tp"])
def test_both_meshes_have_the_groups_of_the_plan(plan: PlacedPlan, launched: str) -> None:
    moved = {"as planned": plan, "by host": by_host(plan)}.get(launched) or numbered(plan, launched)
    found = json.loads(write_device_mesh(moved, "mesh.json").text)
    assert list(found) == ["mesh_dim_names", "mesh", "expert_mesh_dim_names", "expert_mesh"]
    for side, key in (("attention", "mesh"), ("experts", "expert_mesh")):
        names = found[f"{key}_dim_names"]
        assert names == NAMES[side]
        for axis in ("pp", "dp", "tp") if side == "attention" else ("ep", "et"):
            assert groups_of(found[key], names, axis) == groups_in_file(moved, side, axis)
        assert sorted(np.array(found[key]).ravel().tolist()) == list(range(8))


def test_code_makes_the_meshes_that_the_data_say(plan: PlacedPlan) -> None:
    module, calls = ModuleType("mesh"), []

    def mesh(_: str, shape: tuple[int, ...], *, mesh_dim_names: tuple[str, ...]) -> None:
        calls.append((np.arange(8).reshape(shape).tolist(), list(mesh_dim_names)))

    text = write_device_mesh(plan, "mesh.py").text
    lines = [line for line in text.splitlines() if not line.startswith("from torch")]
    module.__dict__.update({"init_device_mesh": mesh, "DeviceMesh": object})
    exec("\n".join(lines), module.__dict__)
    module.device_mesh()
    module.expert_mesh()
    said = json.loads(write_device_mesh(plan, "mesh.json").text)
    assert calls == [
        (said["mesh"], said["mesh_dim_names"]),
        (said["expert_mesh"], said["expert_mesh_dim_names"]),
    ]
    assert write_jax_mesh(plan, "").text.count("return Mesh(") == 2


REFUSED = {
    "megatron": "also says where experts lie",
    "torchtitan": "TorchTitan lacks ZeRO-1",
    "kubernetes": "names no hosts, and pods are bound to theirs",
    "deepspeed": "also says where experts lie",
    "python": "has requests on two matrices",
    "jax": "has requests on two matrices",
}
"""What tells sizes of axes alone, or code; options of trainers have tests of their own."""


@pytest.mark.parametrize("name", [one.name for one in WRITERS if "-options" not in one.name])
def test_every_format_takes_it_or_says_why_not(name: str, file: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    done = cli("export", str(file), "--to", name, "-o", str(target))
    if name not in REFUSED:
        assert done.code == 0, done.err
        assert target.read_text()
        return
    assert (done.code, done.err.count("\n"), target.exists()) == (2, 1, False)
    assert REFUSED[name] in done.err
    assert "Traceback" not in done.err


def test_ranks_lie_as_attention_has_them(plan: PlacedPlan) -> None:
    where = planned(FOLDED).estimate.placement
    assert where is not None
    assert [one.device for one in plan.places] == where.rank_tensor().ravel().tolist()


@pytest.mark.parametrize("number", range(1, 12))
def test_requests_on_both_matrices_are_converted(number: int, file: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.yaml"
    done = cli("convert", str(file), str(target), "--request", str(number))
    kind = data()["requests"][number - 1]["kind"]
    if kind == "dispatch":
        assert done.code == 2
        assert "is no schedule" in done.err
        assert not target.exists()
        return
    assert done.code == 0, done.err
    assert cli("verify", str(target)).code == 0


# Run on real ranks: what each receives is checked, of a dispatch too.


def test_it_runs_on_the_reference(file: Path) -> None:
    done = cli("run", str(file), "--backend", "reference", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["verified"]
    assert [one["kind"] for one in told["requests"]] == [one["kind"] for one in data()["requests"]]


@pytest.mark.parametrize("request_number", [8, 9])
def test_groups_that_are_not_of_its_matrix_are_found(request_number: int, tmp_path: Path) -> None:
    """A request of experts whose step has groups of attention."""
    plan = data()
    assert plan["requests"][request_number]["matrix"] == "experts"
    for step in plan["requests"][request_number]["steps"]:
        step["groups"] = [[0, 4], [1, 5], [2, 6], [3, 7]]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    done = cli("run", str(path), "--backend", "reference")
    assert done.code == 1, done.out


@pytest.mark.cluster
@pytest.mark.slow
def test_it_runs_on_gloo(file: Path) -> None:
    done = cli("run", str(file), "--repeat", "1", "--warmup", "0", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["verified"]
    assert len(told["ranks"]) == 8
    (found,) = [one for one in told["requests"] if one["kind"] == "dispatch"]
    assert found["verified"]
