"""Arrays smaller than their shards: planned, checked, compared with DTensor and executed."""

from __future__ import annotations

from random import Random

import pytest

from p2smt.interop.arrays.peers.compare_peers import compare_peers
from p2smt.report.resharding_picture import picture
from p2smt.resharding.plan_check import check_redistribution
from p2smt.resharding.plan_file import read_redistribution, redistribution_text
from p2smt.resharding.reachability import RedistributionQuestion
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.search import find_redistribution
from p2smt.resharding.types import ArrayType, Uneven
from p2smt.result import Status
from p2smt.runtime.arrays.rank_steps import array_job
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.ranks.run_arrays import run_arrays
from tests.resharding.search.questions import array, cluster
from tests.tiers import examples_of

MESHES = ("a=2,b=2", "a=4", "a=2,b=3", "a=2,b=4", "a=2,b=2,c=2", "a=8")
TORCH = ((3, 5), (1, 3))
"""Shapes of pytorch's test_redistribute_uneven_sharding that are smaller than its 2x2 mesh."""


def planned(source: ArrayType, target: ArrayType) -> RedistributionPlan | None:
    """The plan; None: none keeps to the larger of both ends, which nested chunks may exceed."""
    asked = RedistributionQuestion(source, target, cluster(2, source.mesh.size // 2))
    found = find_redistribution(asked)
    if found.plan is None:
        assert source.uneven is Uneven.NESTED
        assert found.status is Status.INFEASIBLE
        assert found.least.memory_bytes is not None
    return found.plan


def check(plan: RedistributionPlan, path: str) -> None:
    """Proved, valid as a file, no slower than DTensor under the cap, and right when it runs."""
    assert plan.status is Status.OPTIMAL
    assert plan.bound_s == pytest.approx(plan.objective_s)
    with open(path, "w", encoding="utf-8") as file:
        file.write(redistribution_text(plan))
    assert check_redistribution(read_redistribution(path), path).notes == ()
    for row in compare_peers(plan, ["dtensor"]):
        slower = row.seconds is None or row.seconds >= plan.objective_s * (1 - 1e-9)
        assert slower or row.over_cap, row
    result = run_arrays(array_job(plan), RunOptions(backend="reference"))
    assert result is not None
    assert result.verified
    assert picture(plan).startswith("<svg")


@pytest.mark.parametrize("seed", range(examples_of(100)))
def test_small_arrays(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    shuffle = Random(seed)
    mesh, dims = shuffle.choice(MESHES), shuffle.randint(1, 2)
    shape = tuple(shuffle.choice([1, 2, 3, 5]) for _ in range(dims))
    uneven = shuffle.choice([Uneven.NESTED, Uneven.NESTED, Uneven.PADDED])
    names = [part[0] for part in mesh.split(",")]
    layouts = [_layout(shuffle, names, dims, p) for p in (shuffle.random() < 0.4, False)]
    source, target = (array(mesh, shape, text, uneven=uneven) for text in layouts)
    plan = planned(source, target)
    if plan is not None:
        check(plan, str(tmp_path_factory.mktemp("small") / "plan.json"))


def _layout(shuffle: Random, axes: list[str], dims: int, partial: bool) -> str:
    lists: list[list[str]] = [[] for _ in range(dims)]
    sums = ""
    for axis in shuffle.sample(axes, len(axes)):
        where = shuffle.randint(-2 if partial else -1, dims - 1)
        if where >= 0:
            lists[where].append(axis)
        sums += f";P({axis})" * (where == -2)
    return ",".join(f"S({','.join(some)})" if some else "R" for some in lists) + sums


@pytest.mark.parametrize("shape", TORCH)
@pytest.mark.parametrize("sharded", ["S(a,b),R", "S(a),S(b)"])
@pytest.mark.parametrize("back", [False, True])
def test_what_pytorch_s_own_test_has(
    shape: tuple[int, int], sharded: str, back: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ends = [array("a=2,b=2", shape, text, uneven=Uneven.NESTED) for text in (sharded, "R,R")]
    plan = planned(*(ends if back else reversed(ends)))
    assert plan is not None
    check(plan, str(tmp_path_factory.mktemp("torch") / "plan.json"))
