"""What Megatron-LM, TorchTitan and DeepSpeed are told, against their own rules, written anew."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from p2smt.cluster.file import load_topology
from p2smt.errors import InputError
from p2smt.interop.exports import writer_named
from p2smt.interop.frameworks import write_deepspeed, write_megatron, write_torchtitan
from p2smt.interop.meshes.tensor import by_axes, launched_ranks
from p2smt.interop.places import PlacedPlan, RankPlace, by_host, placed
from p2smt.parallelism.placement import ParallelismAxis, Placement, default_ranks
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem, reduce
from p2smt.plans.file_model import AnyPlan, PlanModel
from tests.interop.launchers.trainings import nodes, training_data

Groups = set[tuple[int, ...]]


def ranks_over(axes: str) -> PlacedPlan:
    """Ranks row-major over axes on nodes of 8, as the default layout has them."""
    named = [part.partition("=") for part in axes.split(",")]
    given = tuple(ParallelismAxis(name, int(size)) for name, _, size in named)
    count = math.prod(axis.size for axis in given)
    topology = load_topology(f"dgx-a100:{max(1, count // 8)}")
    problem = Problem(topology, given, (reduce(f"{given[0].name}=1MiB"),))
    places = tuple(RankPlace(rank, f"node{rank // 8}", rank % 8, rank) for rank in range(count))
    where = RankList(tuple(range(count)), problem.axis_sizes)
    hosts = tuple(dict.fromkeys(place.host for place in places))
    return PlacedPlan("plan", cast(AnyPlan, None), problem, where, hosts, 8, places)


def along(plan: PlacedPlan, *axes: str) -> Groups:
    """The launched ranks that differ along some axes of the plan alone."""
    tensor, names = launched_ranks(plan), list(plan.problem.axis_names)
    chosen = [names.index(axis) for axis in axes if axis in names]
    rest = [i for i in range(tensor.ndim) if i not in chosen]
    members = math.prod(tensor.shape[i] for i in chosen)
    lines = tensor.transpose([*rest, *chosen]).reshape(-1, members)
    return {tuple(sorted(line)) for line in lines.tolist()}


def megatron_groups(order: Sequence[str], sizes: Mapping[str, int], token: str) -> Groups:
    """Groups of a token where the first token of the order varies fastest."""
    found: dict[tuple[int, ...], list[int]] = {}
    for rank in range(math.prod(sizes[name] for name in order)):
        rest, at = rank, []
        for name in order:
            rest, digit = divmod(rest, sizes[name])
            at.append(-1 if name == token else digit)
        found.setdefault(tuple(at), []).append(rank)
    return {tuple(group) for group in found.values()}


def megatron_agrees(plan: PlacedPlan, order: Sequence[str]) -> bool:
    """Whether Megatron with this order has the plan's groups, and asserts nothing against it."""
    named = dict(zip(plan.problem.axis_names, plan.problem.axis_sizes, strict=True))
    tp, cp, ep, dp, pp = (named.get(name, 1) for name in ("tp", "cp", "ep", "dp", "pp"))
    world = tp * cp * ep * dp * pp
    dense = {"tp": tp, "cp": cp, "ep": 1, "dp": world // (tp * cp * pp), "pp": pp}
    expert = {"tp": tp, "cp": 1, "ep": ep, "dp": world // (tp * ep * pp), "pp": pp}
    if not (order[-1] == "pp" or pp == 1 or dense["dp"] == expert["dp"]):
        return False
    if megatron_groups(order, dense, "pp") != megatron_groups(order, expert, "pp"):
        return False
    wanted = [
        *((dense, token, along(plan, token)) for token in ("tp", "cp", "pp")),
        (dense, "dp", along(plan, "dp", "ep")),
    ]
    if ep > 1:
        wanted += [(expert, token, along(plan, token)) for token in ("tp", "ep")]
        wanted.append((expert, "dp", along(plan, "dp", "cp")))
    return all(megatron_groups(order, sizes, token) == groups for sizes, token, groups in wanted)


def megatron_order(text: str) -> list[str]:
    """The order that the options stand for."""
    if found := re.search(r'order="([a-z-]+)"', text):
        return found[1].split("-")
    swapped = "--use-tp-pp-dp-mapping" in text
    return ["tp", "cp", "ep", "pp", "dp"] if swapped else ["tp", "cp", "ep", "dp", "pp"]


def every_order(*sizes: str) -> Iterator[str]:
    return (",".join(order) for order in itertools.permutations(sizes))


MEGATRON = [
    *every_order("tp=2", "dp=4", "pp=2"),
    *every_order("tp=2", "cp=2", "dp=2", "pp=2"),
    *every_order("tp=2", "ep=2", "dp=2", "pp=2"),
    *every_order("ep=4", "pp=2", "tp=1"),
    *every_order("cp=2", "ep=2", "dp=4"),
    *every_order("cp=2", "ep=4", "pp=2"),
    *every_order("cp=2", "ep=2", "dp=2", "pp=2"),
    *every_order("cp=2", "ep=4", "tp=2"),
    "dp=16",
    "tp=8",
]


@pytest.mark.parametrize("axes", MEGATRON)
def test_megatron_has_the_groups_of_the_plan(axes: str) -> None:
    """And what is refused, no order would give it."""
    plan = ranks_over(axes)
    try:
        text = write_megatron(plan, "").text
    except InputError:
        orders = itertools.permutations(("tp", "cp", "ep", "dp", "pp"))
        assert not any(megatron_agrees(plan, order) for order in orders)
        return
    assert megatron_agrees(plan, megatron_order(text))
    named = dict(zip(plan.problem.axis_names, plan.problem.axis_sizes, strict=True))
    options = {"tp": "tensor", "cp": "context", "ep": "expert", "pp": "pipeline"}
    for token, option in options.items():
        found = re.search(rf"--{option}(-model)?-parallel-size (\d+)", text)
        assert int(found[2] if found else 1) == named.get(token, 1)


def test_megatron_command_line_orders() -> None:
    assert "order" not in write_megatron(ranks_over("pp=2,dp=4,tp=2"), "").text
    swapped = write_megatron(ranks_over("dp=4,pp=2,tp=2"), "")
    assert "--use-tp-pp-dp-mapping" in swapped.text
    own = write_megatron(ranks_over("tp=2,dp=4,pp=2"), "")
    assert 'order="cp-ep-pp-dp-tp"' in own.text
    assert "--launched pp,dp,tp" in own.notes[0]


@pytest.mark.parametrize(
    "axes", ["dp=2,ep=2,pp=2,tp=2", "ep=2,tp=2,pp=2,dp=2", "ep=2,cp=2,dp=2,pp=2", "cp=2,tp=2,ep=4"]
)
def test_megatron_takes_the_launch_that_it_names(axes: str) -> None:
    plan = ranks_over(axes)
    with pytest.raises(InputError, match="--launched ") as refused:
        write_megatron(plan, "")
    named = str(refused.value).partition("--launched ")[2].split(",")
    again = by_axes(plan, [name.strip() for name in named])
    assert megatron_agrees(again, megatron_order(write_megatron(again, "").text))


TITAN = ("pp", "dp_replicate", "dp_shard", "cp", "tp")


@pytest.mark.parametrize("axes", list(every_order("tp=2", "dp_shard=2", "dp_replicate=2", "pp=2")))
def test_torchtitan_has_the_ranks_of_the_plan(axes: str) -> None:
    """In its order, or launched as the refusal says."""
    plan = ranks_over(axes)
    try:
        text = write_torchtitan(plan, "").text
    except InputError as error:
        named = str(error).partition("--launched ")[2].partition(", here")[0]
        plan = by_axes(plan, named.split(","))
        text = write_torchtitan(plan, "").text
    degrees = [int(line.split()[1]) for line in text.splitlines()]
    mesh = np.arange(16).reshape(degrees)
    for axis, name in enumerate(TITAN):
        lines = np.moveaxis(mesh, axis, -1).reshape(-1, degrees[axis])
        groups = {tuple(line) for line in lines.tolist()}
        assert groups == along(plan, name)


@pytest.mark.parametrize(
    "strategy",
    [
        *("dp=8,zero=0", "dp=8,zero=2", "pp=2,dp=4,zero=0", "tp=2,sp=1,dp=4,zero=3"),
        *("cp=2,dp=4,zero=3", "tp=2,sp=1,dp=4,zero=3,dp_replicate=2"),
    ],
)
def test_torchtitan_has_one_writer_of_degrees(strategy: str) -> None:
    """A training has those of its strategy in both formats, whatever its axes are called."""
    data = training_data(strategy, nodes(4), "fsdp-h100")
    plan = placed(PlanModel.model_validate(data), "test")
    degrees = write_torchtitan(plan, "").text.splitlines()
    options = writer_named("torchtitan-options").write(plan, "").text.splitlines()
    assert degrees == [line for line in options if "_degree " in line]
    sizes = dict(line.removeprefix("--parallelism.").split() for line in degrees)
    copies, shards = (int(sizes[f"data_parallel_{kind}_degree"]) for kind in ("replicate", "shard"))
    said = data["training"]["strategy"]
    assert copies * shards == said["dp"]
    assert copies == (said["dp"] if said["zero"] == 0 else said.get("dp_replicate", 1))


@pytest.mark.parametrize("name", ["torchtitan", "torchtitan-options"])
def test_torchtitan_refuses_what_it_lacks_by_name(name: str) -> None:
    data = training_data("dp=8,zero=1", nodes(4))
    plan = placed(PlanModel.model_validate(data), "test")
    with pytest.raises(InputError, match="TorchTitan lacks ZeRO-1"):
        writer_named(name).write(plan, "")


def test_torchtitan_experts_are_part_of_the_shards() -> None:
    text = write_torchtitan(ranks_over("pp=2,dp=2,ep=4"), "").text
    assert "--parallelism.data_parallel_shard_degree 8" in text
    assert "--parallelism.expert_parallel_degree 4" in text


class ProcessTopology:
    """The rule of DeepSpeed's: ranks are row-major over the axes."""

    def __init__(self, axes: list[str], dims: list[int]) -> None:
        self.ranks, self.axes = default_ranks(dims), axes

    def groups(self, axis: str) -> Groups:
        """Ranks that differ along an axis alone."""
        if axis not in self.axes:
            return {(rank,) for rank in self.ranks.ravel().tolist()}
        at = self.axes.index(axis)
        lines = np.moveaxis(self.ranks, at, -1).reshape(-1, self.ranks.shape[at])
        return {tuple(line) for line in lines.tolist()}


@pytest.mark.parametrize("axes", [*every_order("tp=2", "dp=4", "pp=2"), "dp=16", "dp=2,tp=8"])
def test_deepspeed_has_the_groups_of_the_plan(axes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("deepspeed", "deepspeed.runtime", "deepspeed.runtime.pipe"):
        monkeypatch.setitem(__import__("sys").modules, module, SimpleNamespace())
    stand_in = SimpleNamespace(ProcessTopology=ProcessTopology)
    name = "deepspeed.runtime.pipe.topology"
    monkeypatch.setitem(__import__("sys").modules, name, stand_in)
    plan = ranks_over(axes)
    made: dict[str, Any] = {}
    exec(write_deepspeed(plan, "").text, made)
    found: Any = made["process_topology"]()
    assert {"pipe", "data"} <= set(found.axes)
    for ours, theirs in (("pp", "pipe"), ("dp", "data"), ("tp", "model")):
        assert found.groups(theirs) == along(plan, ours)


def test_deepspeed_sequence_is_beside_data() -> None:
    assert "mesh_param = (4, 4)" in write_deepspeed(ranks_over("dp=4,sp=4"), "").text
    with pytest.raises(InputError, match="sequence axis beside data alone"):
        write_deepspeed(ranks_over("sp=4,dp=4"), "")


@pytest.mark.parametrize("write", [write_megatron, write_torchtitan, write_deepspeed])
def test_axes_that_a_framework_does_not_know(write: Any) -> None:
    with pytest.raises(InputError, match=r"axis foo: is no axis of .*name the axes"):
        write(ranks_over("foo=2,tp=4"), "")
    with pytest.raises(InputError, match="is a second"):
        write(ranks_over("tp=2,model=4"), "")


@pytest.mark.parametrize("write", [write_megatron, write_torchtitan, write_deepspeed])
def test_ranks_that_are_row_major_over_no_axes(write: Any) -> None:
    """Host by host, where an axis lies both inside and outside another."""
    plan = ranks_over("dp=4,tp=4")
    tensor = Placement(((2, 1, 2), (1, 4, 1))).rank_tensor()
    devices = tensor.ravel().tolist()
    places = [RankPlace(r, f"node{d // 8}", d % 8, d) for r, d in enumerate(devices)]
    where = RankList(tuple(devices), (4, 4))
    mixed = PlacedPlan("plan", plan.plan, plan.problem, where, plan.hosts, 8, tuple(places))
    assert write(mixed, "").text
    with pytest.raises(InputError, match="numbers ranks row-major over the axes"):
        write(by_host(mixed), "")
