"""What is said of JAX's processes, against what JAX makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.interop.exported import Exported
from p2smt.interop.frameworks import write_jax_mesh
from p2smt.interop.meshes.tensor import process_notes
from p2smt.interop.places import PlacedPlan, by_host
from tests.cli.tools import cli
from tests.interop.launchers.plans import placed_plan, unnamed

NODES, EACH = 3, 4


def mesh_devices(plan: PlacedPlan) -> list[tuple[str, int]]:
    """What ``jax.devices()`` lists by process, one for each host, hosts by their first rank."""
    hosts = dict.fromkeys(place.host for place in plan.places)
    return [(host, device) for host in hosts for device in range(plan.per_host)]


@given(st.permutations(range(NODES * EACH)))
def test_it_is_silent_where_a_process_for_each_host_lists_the_ranks_in_order(
    ranks: list[int],
) -> None:
    plan = placed_plan(unnamed(NODES, (EACH,)), ranks)
    planned = [(place.host, place.local_rank) for place in plan.places]
    assert (process_notes(plan) == ()) == (mesh_devices(plan) == planned)
    assert process_notes(by_host(plan)) == ()


@pytest.mark.parametrize("order", [[0, 4, 1, 5, 2, 6, 3, 7], [3, 2, 1, 0, 4, 5, 6, 7]])
def test_the_note_names_a_host_and_its_ranks(order: list[int]) -> None:
    plan = placed_plan(unnamed(2, (EACH,)), order)
    found: Exported = write_jax_mesh(plan, "FILE")
    ranks = ", ".join(str(order.index(device)) for device in range(EACH))
    assert f"devices 0, 1, .. of node0 are ranks {ranks}, not one block" in found.notes[0]
    assert "--by-host" in found.notes[0]
    assert write_jax_mesh(by_host(plan), "FILE").notes == ()


@pytest.mark.parametrize("name", ["jax-mesh", "jax"])
def test_export_says_so(name: str, plan: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    axes = ",".join(axis["name"] for axis in reversed(plan["axes"]))
    scattered = cli("export", str(path), "--to", name, "--launched", axes)
    assert scattered.code == 0
    assert "not one block in this order" in scattered.err
    assert "one block" not in cli("export", str(path), "--to", name, "--by-host").err
