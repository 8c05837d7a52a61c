"""DTensor's planners, asked without processes, as steps of ours."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from torch.distributed.tensor import _redistribute as own  # noqa: E402
from torch.distributed.tensor._collective_utils import MeshTopoInfo  # noqa: E402
from torch.distributed.tensor._dtensor_spec import DTensorSpec  # noqa: E402

from p2smt.errors import InputError  # noqa: E402
from p2smt.interop.arrays.peers.peer_replay import PeerPath, first_inside  # noqa: E402
from p2smt.interop.arrays.peers.torch_planner import TorchPlanner, torch_moves  # noqa: E402
from p2smt.resharding.endpoints import ends_of  # noqa: E402
from p2smt.resharding.types import (  # noqa: E402  # noqa: E402
    ArrayType,
    ElementType,
    Mesh,
    Uneven,
    parse_layout,
    parse_mesh,
)

GREEDY, GRAPH = TorchPlanner


def kind(layout: str, mesh: str = "a=4,b=8", shape: tuple[int, ...] = (8192, 8192)) -> ArrayType:
    made = parse_mesh(mesh)
    return ArrayType(made, shape, ElementType.BF16, parse_layout(layout, made), Uneven.NESTED)


def path(
    source: ArrayType,
    target: ArrayType,
    which: TorchPlanner = GREEDY,
    flattened: bool = False,
    host: int = 8,
) -> PeerPath:
    moves = torch_moves(source, target, which, devices_per_host=host, flattened=flattened)
    return first_inside(ends_of(source, target), moves)[1]


def texts(source: str, target: str, which: TorchPlanner = GREEDY, **more: bool) -> list[str]:
    ends = ends_of(kind(source), kind(target))[0]
    found = path(kind(source), kind(target), which, **more)
    assert not found.outside
    return [step.text(ends.frame) for step in found.steps]


def test_the_greedy_plan_gathers_misaligned_shards_first() -> None:
    assert texts("S(a,b),R", "R,S(a,b)") == [
        "all-gather b from dim 0",
        "all-to-all a from dim 0 to dim 1",
        "slice dim 1 by b",
    ]


def test_the_graph_plan_keeps_the_array_sharded() -> None:
    found = texts("S(a,b),R", "R,S(a,b)", GRAPH)
    assert found[0] == "all-to-all b from dim 0 to dim 1"
    assert found[-1] == "all-to-all b from dim 0 to dim 1"
    assert len(found) == 5


def test_flattened_meshes_merge_neighbours() -> None:
    apart = texts("S(a,b),R", "R,R")
    assert apart == ["all-gather b from dim 0", "all-gather a from dim 0"]
    assert texts("S(a,b),R", "R,R", flattened=True) == ["all-gather a,b from dim 0"]
    assert texts("R,R;P(a);P(b)", "S(a,b),R", flattened=True) == ["reduce-scatter a,b to dim 0"]
    assert texts("R,R;P(a);P(b)", "R,R", flattened=True) == ["all-reduce a,b"]


def test_some_of_three_axes_are_merged() -> None:
    mesh, shape = "a=2,b=2,c=8", (64, 64)
    source, target = kind("S(a,b),S(c)", mesh, shape), kind("R,S(c)", mesh, shape)
    apart, merged = path(source, target), path(source, target, flattened=True)
    assert [len(found.steps) for found in (apart, merged)] == [2, 1]
    assert apart.steps[-1].after == merged.steps[-1].after


def test_another_order_of_shards_is_planned_by_the_graph() -> None:
    greedy = path(kind("S(b,a),R"), kind("S(a,b),R"))
    assert greedy == path(kind("S(b,a),R"), kind("S(a,b),R"), GRAPH)
    assert greedy.steps
    assert not greedy.outside


def layout_of(letters: tuple[str, ...]) -> str:
    dims: list[list[str]] = [[], []]
    partial = ""
    for axis, letter in zip("ab", letters, strict=True):
        if letter == "P":
            partial += f";P({axis})"
        elif letter != "R":
            dims[int(letter)].append(axis)
    return ",".join(f"S({','.join(dim)})" if dim else "R" for dim in dims) + partial


@pytest.mark.exhaustive
def test_all_pairs_of_torchs_own_test_are_within_the_six_steps() -> None:
    sources = [pair for pair in itertools.product("R01P", repeat=2) if pair != ("R", "R")]
    found: Counter[str] = Counter()
    for source, target in itertools.product(sources, itertools.product("R01", repeat=2)):
        ends = kind(layout_of(source)), kind(layout_of(target))
        for which, flattened in itertools.product(TorchPlanner, (False, True)):
            found[path(*ends, which, flattened).outside] += 1
    assert found == {"": 15 * 9 * 4}


def test_nothing_to_do_has_no_steps() -> None:
    assert path(kind("S(a),R"), kind("S(a),R"), GRAPH) == PeerPath(())


def test_axes_of_one_device_move_nothing() -> None:
    mesh = "a=1,b=8"
    assert path(kind("S(a),R", mesh), kind("R,R", mesh)).steps == ()


def test_uneven_axes_one_at_a_time() -> None:
    ends = [kind(layout, "a=2,b=2", (5, 3)) for layout in ("S(a,b),R", "R,R")]
    assert len(path(ends[0], ends[1]).steps) == 2
    merged = path(ends[0], ends[1], flattened=True)
    assert "one mesh axis at a time" in merged.outside  # what torch gets wrong silently


def test_making_partial_values_is_outside() -> None:
    mesh = parse_mesh("a=2")
    ends = [ArrayType(mesh, (8,), ElementType.F32, parse_layout(text, mesh)) for text in ("R", "R")]
    partial = ArrayType(mesh, (8,), ElementType.F32, parse_layout("R;P(a)", mesh))
    moves = torch_moves(ends[0], partial, GREEDY, devices_per_host=8)
    found = first_inside(ends_of(ends[0], ends[1]), moves)[1]
    assert found.outside.endswith("is none of the six steps")


def test_the_devices_of_a_host_are_those_that_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    asked = own._gen_transform_infos_non_cached

    def spied(source: DTensorSpec, target: DTensorSpec, graph: bool) -> object:
        topology = MeshTopoInfo.build_from_mesh(source.mesh)
        seen.append(len(set(topology.mesh_dim_latency)))
        return asked(source, target, graph)

    monkeypatch.setattr(own, "_gen_transform_infos_non_cached", spied)
    for host in (8, 32, 8):
        path(kind("S(a,b),R"), kind("R,R"), GRAPH, host=host)
    assert seen == [2, 1, 2]  # axis a leaves a host of 8


def test_nothing_of_torch_is_left_changed() -> None:
    level, planners = own.logger.level, dict(own._planner_cache)
    path(kind("S(a,b),R"), kind("R,R"), GRAPH)
    assert own.logger.level == level
    assert dict(own._planner_cache) == planners
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize("sub_axis", ["S(b:(2)4),R", "R,R;P(b:(1)2)"])
def test_sub_axes_are_refused(sub_axis: str) -> None:
    with pytest.raises(InputError, match="whole mesh axes"):
        path(kind(sub_axis), kind("R,R"))


def test_other_orders_of_devices_and_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    source = kind("S(a),R", "a=2,b=2")
    mesh = Mesh.of([("a", 2), ("b", 2)], [3, 2, 1, 0])
    target = ArrayType(mesh, source.shape, source.element, source.layout, source.uneven)
    with pytest.raises(InputError, match="DTensor has none"):
        path(source, target)
    monkeypatch.setattr(torch, "__version__", "2.14.0")
    with pytest.raises(InputError, match=r"in 2\.13 only"):
        path(source, source)
