"""Device meshes: what is written, what is refused, and DTensor on what was written."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from p2smt.errors import InputError
from p2smt.interop.frameworks import write_device_mesh
from p2smt.interop.meshes.tensor import (
    in_blocks,
    increasing_ranks,
    launched_ranks,
    numbered,
    rising_hosts,
)
from p2smt.interop.places import PlacedPlan, by_host, placed
from p2smt.plans.file import read_plan
from tests.cli.tools import TINY
from tests.interop.meshes.plans import rank_list_plan, solved
from tests.interpreter import python
from tests.refusals import refusal
from tests.tiers import but_the_first


@pytest.fixture(scope="module")
def across(tmp_path_factory: pytest.TempPathFactory) -> PlacedPlan:
    """dp=2, tp=4 on two nodes of four devices, tp two ways across the nodes."""
    folder = tmp_path_factory.mktemp("across")
    (folder / "tiny.yaml").write_text(TINY)
    given = ("--axes", "dp=2,tp=4", "--reduce", "dp=1MiB", "--fix", "tp=node:2")
    return placed(read_plan(solved(folder, str(folder / "tiny.yaml"), *given)), "plan")


def dtensor(folder: Path, module: str, ranks: int) -> list[dict[str, object]]:
    """What the ranks of a job found of a mesh."""
    path = folder / "mesh.py"
    path.write_text(module)
    python("-m", "tests.interop.meshes.dtensor_ranks", str(ranks), str(path), str(folder))
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("blocks", but_the_first(True, False), ids=["host by host", "as planned"])
@pytest.mark.exhaustive
def test_tensors_come_back_from_every_placement(
    tmp_path: Path, across: PlacedPlan, blocks: bool
) -> None:
    plan = by_host(across) if blocks else across
    found = dtensor(tmp_path, write_device_mesh(plan, "mesh.py").text, 8)
    tensor = launched_ranks(plan)
    for coordinate in itertools.product(range(2), range(4)):
        one = found[int(tensor[coordinate])]
        assert one == {"coordinate": list(coordinate), "names": ["dp", "tp"], "whole": True}


@pytest.mark.cluster
@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_tensor_that_is_refused_gives_wrong_results(tmp_path: Path, across: PlacedPlan) -> None:
    """Without an error: that is why it is refused."""
    plan = in_blocks(across, ["node1", "node0"])
    with pytest.raises(InputError, match="torch sorts the ranks"):
        write_device_mesh(plan, "mesh.py")
    module = (
        "import torch\nfrom torch.distributed.device_mesh import DeviceMesh\n"
        "def device_mesh(device_type):\n"
        f"    mesh = torch.tensor({launched_ranks(plan).tolist()})\n"
        "    return DeviceMesh(device_type, mesh, mesh_dim_names=('dp', 'tp'))\n"
    )
    assert not all(one["whole"] for one in dtensor(tmp_path, module, 8))


def test_plain_ranks_need_no_tensor(across: PlacedPlan) -> None:
    text = write_device_mesh(across, "mesh.py").text
    assert 'init_device_mesh(device_type, (2, 4), mesh_dim_names=("dp", "tp"))' in text
    assert "import torch\n" not in text


def test_ranks_host_by_host_are_a_tensor(across: PlacedPlan) -> None:
    """Each node has half of tp, and both of dp."""
    tensor = increasing_ranks(by_host(across))
    assert tensor.tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    text = write_device_mesh(by_host(across), "mesh.py").text
    assert "torch.arange(8).reshape(2, 2, 2).permute(1, 0, 2).reshape(2, 4)" in text


def test_json_has_the_tensor_and_its_names(across: PlacedPlan) -> None:
    found = json.loads(write_device_mesh(by_host(across), "mesh.json").text)
    assert found == {"mesh_dim_names": ["dp", "tp"], "mesh": [[0, 1, 4, 5], [2, 3, 6, 7]]}


def test_the_refusal_names_the_launch_that_mends_it(tmp_path: Path, across: PlacedPlan) -> None:
    (tmp_path / "hosts").write_text("node1\nnode0\n")
    text = refusal(write_device_mesh, numbered(across, str(tmp_path / "hosts")), "mesh.py")
    assert "launched rank 0 comes after 5 along tp" in text
    assert "--by-host does so: start the hosts in the order node[0-1]" in text
    assert write_device_mesh(in_blocks(across, rising_hosts(across) or ()), "mesh.py")


def test_ranks_over_axes_in_another_order(across: PlacedPlan) -> None:
    plan = numbered(across, "tp,dp")
    assert launched_ranks(plan).tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert [place.device for place in plan.places[:3]] == [
        across.places[0].device,
        across.places[4].device,
        across.places[1].device,
    ]


def crossed(folder: Path) -> PlacedPlan:
    """Two nodes of two devices whose ranks are 0 1 / 1' 0': no order of blocks increases."""
    return placed(rank_list_plan(folder, [0, 2, 3, 1], ["a=2", "b=2"], nodes=2, devices=2), "plan")


def test_no_order_of_hosts_mends_it(tmp_path: Path) -> None:
    plan = crossed(tmp_path)
    assert rising_hosts(plan) is None
    with pytest.raises(InputError, match="no order of hosts in blocks mends it"):
        write_device_mesh(by_host(plan), "mesh.py")
    assert "init_device_mesh" in write_device_mesh(plan, "mesh.py").text


@pytest.mark.parametrize(
    ("sizes", "nodes", "devices"), [(["a=2", "b=3"], 3, 2), (["a=6"], 3, 2), (["a=2", "b=2"], 4, 1)]
)
def test_hosts_rise_if_any_order_does(
    tmp_path: Path, sizes: list[str], nodes: int, devices: int
) -> None:
    """Every rank list of a few devices against every order of the hosts."""
    rng = np.random.default_rng(1)
    seen = set()
    for turn in range(60):
        blocks = np.arange(nodes * devices).reshape(nodes, devices)
        ranks = rng.permutation(blocks).ravel().tolist()
        if turn % 2:
            one, other = rng.integers(0, len(ranks), 2).tolist()
            ranks[one], ranks[other] = ranks[other], ranks[one]
        plan = placed(rank_list_plan(tmp_path, ranks, sizes, nodes=nodes, devices=devices), "plan")
        orders = [order for order in itertools.permutations(plan.hosts) if rises(plan, order)]
        found = rising_hosts(plan)
        assert (found in orders) if orders else found is None
        seen.add(found is None)
    assert len(seen) == (1 if devices == 1 else 2)


def rises(plan: PlacedPlan, order: tuple[str, ...]) -> bool:
    tensor = launched_ranks(in_blocks(plan, order))
    return all((np.diff(tensor, axis=axis) > 0).all() for axis in range(tensor.ndim))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dp", "the axes of the plan are dp,tp"),
        ("dp,tp,dp", "the axes of the plan are dp,tp"),
        ("dp,pp", "the axes of the plan are dp,tp"),
        ("no-such-file", "No such file"),
    ],
)
def test_numberings_that_are_none(across: PlacedPlan, text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        numbered(across, text)


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        (["node0"], "'node1'.*is not started"),
        (["node0", "node1", "node0"], "is named twice"),
        (["node0", "node2"], "host 'node2': has no rank"),
    ],
)
def test_hosts_that_are_not_those_of_the_plan(
    across: PlacedPlan, hosts: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        in_blocks(across, hosts)
