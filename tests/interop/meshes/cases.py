"""Exported programs to run, and what their results must be."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from p2smt.interop.exported import Exported
from p2smt.interop.meshes.programs.memory_rows import launched_requests
from p2smt.interop.meshes.tensor import launched_ranks
from p2smt.interop.places import PlacedPlan, placed
from p2smt.plans.file import read_plan
from tests.interop.meshes.payloads import elements_of, expected, groups_along
from tests.interpreter import python

Case = dict[str, Any]
Write = Callable[[PlacedPlan, str], Exported]


def same(plan: PlacedPlan) -> PlacedPlan:
    """Ranks launched as the plan has them."""
    return plan


def exported(
    folder: Path,
    plan: Mapping[str, Any],
    name: str,
    write: Write,
    renumber: Callable[[PlacedPlan], PlacedPlan] = same,
) -> list[Case]:
    """A module with the requests of a plan, and a case for each."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps(plan))
    one = renumber(placed(read_plan(str(path)), f"plan {name}"))
    module = folder / f"{name}.py"
    module.write_text(write(one, str(module)).text)
    return [
        {
            "module": str(module),
            "name": request.name,
            "kind": request.model.kind.value,
            "elements": elements_of(request.model.kind.value, request.size),
            "axes": list(request.axes),
            "sizes": list(one.problem.axis_sizes),
            "shards": request.model.shards,
            "program": request.model.program,
            "launched": launched_ranks(one).ravel().tolist(),
        }
        for request in launched_requests(one)
    ]


def run_over_gloo(folder: Path, ranks: int, cases: Sequence[Case]) -> None:
    """All cases on real processes; results land in the folder."""
    _run(folder, cases, ("tests.interop.meshes.gloo_ranks", str(ranks)), {})


def run_on_host_devices(folder: Path, ranks: int, cases: Sequence[Case]) -> None:
    """All cases on as many devices that JAX is forced to see in the host."""
    forced = {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={ranks}",
        "JAX_PLATFORMS": "cpu",
    }
    _run(folder, cases, ("tests.interop.meshes.jax_devices",), forced)


def _run(
    folder: Path, cases: Sequence[Case], module: Sequence[str], more: Mapping[str, str]
) -> None:
    listed = folder / "cases.json"
    listed.write_text(json.dumps(cases))
    python("-W", "error", "-m", *module, str(listed), str(folder), environment=more)


def check_all(folder: Path, cases: Sequence[Case], *, by_plan_rank: bool = False) -> None:
    """The results of every case are those of the meaning of its kind.

    by_plan_rank: results are numbered by the ranks of the plan, however these are launched.
    """
    for number, case in enumerate(cases):
        _check(folder, number, {**case, "launched": None} if by_plan_rank else case)


def _check(folder: Path, number: int, case: Case) -> None:
    for group in groups_along(case["sizes"], case["axes"]):
        members = [case["launched"][rank] for rank in group] if case["launched"] else list(group)
        if case["kind"] != "send":
            members.sort()
        found = [_result(folder, number, rank) for rank in members]
        if case["kind"] == "reduce-scatter":
            _check_parts(case, number, members, found)
            continue
        for place, result in enumerate(found):
            wanted = expected(case["kind"], number, members, place, case["elements"])
            if wanted is None:
                assert result is None or not result.any(), case
            else:
                assert result is not None
                assert (result == wanted).all(), (case, members[place])


def _check_parts(case: Case, number: int, members: list[int], found: list[Any]) -> None:
    """Each member has another part of the sum: the one that the plan says, along one axis."""
    wanted = expected("reduce-scatter", number, members, 0, case["elements"])
    assert wanted is not None
    parts = [[i for i, part in enumerate(wanted) if (part == one).all()] for one in found]
    assert sorted(parts) == [[i] for i in range(len(members))], case
    if len(case["axes"]) == 1 and case["launched"] is None:
        assert [i for (i,) in parts] == case["shards"], case


def _result(folder: Path, number: int, rank: int) -> Any:
    file = folder / f"{number}.{rank}.npy"
    return np.load(file) if file.exists() else None
