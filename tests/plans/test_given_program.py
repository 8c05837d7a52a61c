"""What given requests and programs take on a placement: every kind, several at once, over sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.cluster.file import load_topology, parse_topology
from p2smt.collectives.dispatch import AnyKind
from p2smt.cost.link_bounds import link_bound_s
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import (
    Problem,
    Request,
    all_gather,
    all_to_all,
    parse_axes,
    reduce,
    reduce_scatter,
    send,
)
from p2smt.plans.given_program import Sweep, cost_by_size, cost_of, sweep
from p2smt.result import Status
from p2smt.search.solve import solve
from tests.cli.tools import TINY

PLACEMENT = Placement(((1, 2), (2, 2)))
HIERARCHICAL = (
    "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node"
)
EVERY_KIND = (
    reduce("tp=1GiB"),
    reduce_scatter("tp=8MiB*3"),
    all_gather("dp+tp=64KiB"),
    all_to_all("tp=1MiB"),
    send("dp=1MiB*2"),
)


def problem(*requests: Request) -> Problem:
    return Problem(parse_topology(TINY, "tiny"), parse_axes("dp=2,tp=4"), requests)


def test_every_kind_takes_what_solve_says_of_the_same_placement_and_program() -> None:
    asked = problem(*EVERY_KIND)
    for found in solve(asked, top=2).alternatives:
        assert found.matrix is not None
        texts = [str(a.program) for a in found.requests if a.program is not None]
        given = cost_of(asked, Placement(found.matrix), texts)
        assert given.objective_s == pytest.approx(found.objective_s, rel=1e-12)
        for mine, theirs in zip(given.requests, found.requests, strict=True):
            assert mine.program == theirs.program
            same = ("seconds", "steps", "payloads", "peak_bytes", "shards", "single_s", "checked")
            assert [getattr(mine, key) for key in same] == [getattr(theirs, key) for key in same]


def test_nothing_is_called_proved() -> None:
    found = cost_of(problem(*EVERY_KIND), PLACEMENT)
    assert found.status is Status.FEASIBLE
    fixed = [a.status for a in found.requests if not a.request.kind.has_programs]
    assert fixed == [Status.OPTIMAL] * 2
    assert cost_of(problem(*EVERY_KIND[3:]), PLACEMENT).status is Status.OPTIMAL


def test_without_programs_each_request_is_its_single_collective() -> None:
    found = cost_of(problem(*EVERY_KIND), PLACEMENT)
    assert [a.request for a in found.requests] == list(EVERY_KIND)
    for answer in found.requests:
        assert answer.seconds == answer.single_s > 0
        assert len(answer.steps) == 1
        scene = Scene.of(parse_topology(TINY, "tiny"), PLACEMENT, (1,))
        if answer.request.axes == ("tp",) and answer.request.kind.has_programs:
            bound = link_bound_s(scene.topology, scene.digits, *_asked(answer.request))
            assert answer.physical_bound_s == bound <= answer.seconds
    assert found.objective_s == pytest.approx(sum(a.total_s for a in found.requests))
    largest = replace(problem(*EVERY_KIND), objective="max")
    assert cost_of(largest, PLACEMENT).objective_s == max(a.total_s for a in found.requests)


def _asked(request: Request) -> tuple[AnyKind, int]:
    return request.kind, request.payload_bytes


def test_programs_belong_to_the_requests_that_have_any_in_their_order() -> None:
    asked = problem(reduce("tp=1GiB"), send("dp=1MiB"), reduce("dp+tp=1MiB"))
    found = cost_of(asked, PLACEMENT, [HIERARCHICAL, "single"])
    texts = [None if a.program is None else str(a.program) for a in found.requests]
    assert texts == [HIERARCHICAL, None, "all-reduce inside root"]
    for count in (1, 3):
        with pytest.raises(InputError, match=r"all-reduce tp 1 GiB, all-reduce dp\+tp 1 MiB") as no:
            cost_of(asked, PLACEMENT, [HIERARCHICAL] * count)
        assert "give one for each, in this order" in no.value.remedy
    with pytest.raises(InputError, match="one fixed step; drop the program"):
        cost_of(problem(send("dp=1MiB")), PLACEMENT, ["single"])


def test_a_program_that_breaks_a_rule_is_refused() -> None:
    asked = problem(reduce("dp+tp=1GiB"))
    with pytest.raises(InputError, match="is not valid"):
        cost_of(asked, PLACEMENT, ["all-reduce inside node"])


def test_a_group_of_one_device_has_nothing_to_do() -> None:
    cluster = parse_topology(TINY, "tiny")
    asked = Problem(cluster, parse_axes("dp=8,pp=1"), (reduce("pp=1GiB"), send("pp=1MiB")))
    found = cost_of(asked, Placement(((2, 4), (1, 1))))
    assert [(a.seconds, a.steps, a.checked) for a in found.requests] == [
        (0.0, (), "nothing to do")
    ] * 2
    with pytest.raises(InputError, match="needs no program"):
        cost_of(
            replace(asked, requests=asked.requests[:1]), Placement(((2, 4), (1, 1))), ["single"]
        )


def test_algorithms_and_pipelines_of_the_problem_count() -> None:
    cluster = load_topology("dgx-a100:2")
    asked = Problem(cluster, parse_axes("dp=16"), (reduce("dp=256MiB"),))
    where, programs = Placement(((2, 8),)), [HIERARCHICAL]
    whole = cost_of(asked, where, programs)
    piped = cost_of(replace(asked, pipeline=None), where, programs)
    assert piped.requests[0].chunks > 1
    assert piped.objective_s < whole.objective_s
    rings = cost_of(replace(asked, algorithms=tuple(cluster.algorithms)[:1]), where, programs)
    names = {step.algorithm for step in rings.requests[0].steps}
    assert names == {cluster.algorithms[0].value}


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="column products"):
        cost_of(problem(reduce("tp=1GiB")), Placement(((2, 1), (2, 2))))


def test_a_size_of_a_sweep_takes_what_it_takes_alone() -> None:
    asked, sizes = problem(*EVERY_KIND), (1, 1000, 2**20, 2**33)
    texts = [HIERARCHICAL, "single", "single"]
    found = cost_by_size(asked, PLACEMENT, sizes, texts)
    for size, at in zip(sizes, found, strict=True):
        requests = tuple(replace(r, payload_bytes=size) for r in asked.requests)
        assert at == cost_of(replace(asked, requests=requests), PLACEMENT, texts)


def crossing() -> Sweep:
    """Two programs of which each is the faster one somewhere, by the textbook."""
    cluster = load_topology("dgx-a100:2").nominal()
    asked = Problem(cluster, parse_axes("dp=16"), (reduce("dp=1KiB"),))
    sizes = [2**n for n in range(10, 34)]
    masters = "reduce inside node; all-reduce master node in root; broadcast inside node"
    return sweep(asked, Placement(((2, 8),)), sizes, [masters, HIERARCHICAL])


def test_curves_hold_the_single_collective_and_each_program_once() -> None:
    found = crossing()
    single, *programs = found.curves(0)
    assert single.program is None
    assert single.seconds == tuple(at[0].requests[0].single_s for at in found.by_size)
    for column, curve in enumerate(programs):
        assert curve.seconds == tuple(at[column].objective_s for at in found.by_size)
    asked = replace(found.problem, requests=(reduce("dp=1KiB"),))
    again = sweep(asked, found.placement, [1024], ["single", HIERARCHICAL, HIERARCHICAL])
    assert [str(c.program) for c in again.curves(0)] == ["None", HIERARCHICAL]


def test_the_fastest_are_runs_of_sizes() -> None:
    found = crossing()
    curves, runs = found.curves(0), found.fastest(0)
    assert [curve for curve, _, _ in runs] == [1, 2, 0]
    assert [run[1] for run in runs] == [
        found.sizes[0],
        *(_next(found, run[2]) for run in runs[:-1]),
    ]
    assert runs[-1][2] == found.sizes[-1]
    for curve, first, last in runs:
        for size in (s for s in found.sizes if first <= s <= last):
            n = found.sizes.index(size)
            assert curves[curve].seconds[n] == min(other.seconds[n] for other in curves)


def _next(found: Sweep, size: int) -> int:
    return found.sizes[found.sizes.index(size) + 1]
