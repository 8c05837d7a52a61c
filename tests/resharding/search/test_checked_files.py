"""Whatever is solved is written, read, checked and proved again."""

from __future__ import annotations

import json
import random

import pytest

from p2smt.cluster.file import topology_from_data
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.files.validation import validated
from p2smt.plans.solution import ProofStatus
from p2smt.resharding.plan_check import check_redistribution
from p2smt.resharding.plan_file import RedistributionModel, redistribution_text
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.search import prove_redistribution, solve_redistribution
from p2smt.resharding.steps import StepKind
from p2smt.resharding.types import (
    ArrayType,
    ElementType,
    Layout,
    Mesh,
    SubAxis,
    Uneven,
    parse_layout,
    parse_mesh,
)
from p2smt.result import SearchLimits, Status

CASES = 40


def cluster(sizes: tuple[int, ...]) -> Topology:
    levels = [
        {
            "name": f"l{number}",
            "size": size,
            "link": {
                "kind": "switch",
                "bandwidth": "25 GB/s" if number == 0 else "300 GB/s",
                "latency": "5 us",
            },
        }
        for number, size in enumerate(sizes)
    ]
    return topology_from_data({"name": "drawn", "levels": levels}, "drawn")


def drawn_layout(draw: random.Random, mesh: Mesh, dimensions: int, partial: bool) -> Layout:
    dims: list[list[SubAxis]] = [[] for _ in range(dimensions)]
    contributions = []
    for axis in draw.sample(range(len(mesh.axes)), len(mesh.axes)):
        size = mesh.axes[axis].size
        parts = [SubAxis(axis, 1, size)]
        if size % 2 == 0 and size > 2 and draw.random() < 0.4:
            parts = [SubAxis(axis, 1, 2), SubAxis(axis, 2, size // 2)]
        for part in parts:
            chance = draw.random()
            if partial and chance < 0.2:
                contributions.append(part)
            elif chance < 0.8:
                draw.choice(dims).append(part)
    return Layout(tuple(map(tuple, dims)), tuple(contributions))


def drawn_plan(draw: random.Random) -> RedistributionPlan | None:
    """The plan of a drawn question; None where its types do not fit each other."""
    topology = cluster(draw.choice([(2, 4), (2, 2, 2), (3, 2), (2, 6), (4,)]))
    count = topology.devices
    first = draw.choice([size for size in range(1, count) if count % size == 0])
    axes = [("x", first), ("y", count // first)]
    meshes = [Mesh.of(axes, draw.sample(range(count), count)) for _ in range(2)]
    uneven, dimensions = draw.choice(list(Uneven)), draw.choice([1, 2, 3])
    shape = tuple(
        count * draw.choice([1, 16]) if uneven is Uneven.REFUSE else count + draw.randrange(40)
        for _ in range(dimensions)
    )
    try:
        source, target = (
            ArrayType(
                meshes[number if draw.random() < 0.3 else 0],
                shape,
                ElementType.F32,
                drawn_layout(draw, meshes[0], dimensions, number == 0),
                uneven,
            )
            for number in (0, 1)
        )
        return solve_redistribution(source, target, topology)
    except InputError:
        return None


@pytest.mark.exhaustive
@pytest.mark.slow
def test_whatever_is_solved_is_valid_and_proved_again() -> None:
    draw, found = random.Random(7), 0
    while found < CASES:
        plan = drawn_plan(draw)
        if plan is None:
            continue
        found += 1
        data = json.loads(redistribution_text(plan))
        report = check_redistribution(validated(RedistributionModel, data, "plan"), "plan")
        assert report.notes == ()
        assert report.plan is not None
        if plan.status is Status.OPTIMAL:
            proof = prove_redistribution(report.plan, SearchLimits(seed=1))
            assert proof.status is ProofStatus.PROVED


@pytest.mark.parametrize("uneven", [Uneven.NESTED, Uneven.PADDED])
def test_two_permutes_of_which_one_is_free_are_one(uneven: Uneven) -> None:
    """The first would only rename what devices hold, and the second costs what one step does."""
    meshes = parse_mesh("a=2,b=2"), parse_mesh("a=2,b=2", [0, 2, 1, 3])
    source, target = (
        ArrayType(mesh, (37, 42), ElementType.F32, parse_layout(text, mesh), uneven)
        for mesh, text in zip(meshes, ("R,S(b);P(a)", "R,S(b)"), strict=True)
    )
    plan = solve_redistribution(source, target, cluster((4,)))
    kinds = [step.kind for step in plan.array_steps]
    assert kinds == [StepKind.ALL_REDUCE, StepKind.PERMUTE]
