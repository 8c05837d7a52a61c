"""Jobs of plans and of programs: the groups of the file, the times of the cost model."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from p2smt.cluster.file import load_topology
from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.plans.file import read_plan
from p2smt.programs.program import parse_program
from p2smt.runtime.job import Job, ordered
from p2smt.runtime.programs.plan_job import Changes, plan_job, program_job
from tests.cli.tools import EVERY_KIND, TINY, cli
from tests.runtime.tools import ALL, reference

Plan = dict[str, Any]


def job_of(folder: Path, plan: Plan, changes: Changes | None = None) -> Job:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    return plan_job(read_plan(str(path)), "plan", changes or Changes())


def test_predictions_are_those_of_the_plan(tmp_path: Path, plan: Plan) -> None:
    job = job_of(tmp_path, plan)
    assert job.ranks == 8
    for request, model in zip(job.requests, plan["requests"], strict=True):
        assert [s.predicted_s for s in request.steps] == pytest.approx(
            [s["seconds"] for s in model["steps"]]
        )
        assert request.predicted_s == pytest.approx(model["seconds"])
        assert request.baseline_predicted_s == pytest.approx(model["single_collective_s"])
        assert [s.groups for s in request.steps] == [ordered(s["groups"]) for s in model["steps"]]
        assert (request.payload_bytes, request.times) == (model["bytes"], model["times"])


def test_a_plan_runs(tmp_path: Path, plan: Plan) -> None:
    job = job_of(tmp_path, plan, Changes(payload_bytes=1000))
    assert reference(*job.requests).verified
    names = [request.name for request in job.requests]
    assert names == [
        *("all-reduce tp", "reduce-scatter tp", "all-gather dp+tp"),
        *("all-to-all tp", "send dp"),
    ]


def test_changed_payload_and_chunks(tmp_path: Path, tiny: str) -> None:
    pipelined = cli("solve", "-t", tiny, *EVERY_KIND, "--pipeline", "4", "--json").json()["plan"]
    job = job_of(tmp_path, pipelined)
    for request, model in zip(job.requests, pipelined["requests"], strict=True):
        assert request.chunks == model["chunks"]
        assert request.predicted_s == pytest.approx(model["seconds"])
    small = job_of(tmp_path, pipelined, Changes(payload_bytes=4096, chunks=2))
    for request in small.requests:
        assert request.payload_bytes == 4096
        assert request.chunks == (2 if len(request.steps) > 1 else 1)
        assert request.predicted_s is not None
    assert any(request.chunks == 2 for request in small.requests)


def test_links_of_another_topology(tmp_path: Path, plan: Plan) -> None:
    slow = tmp_path / "slow.yaml"
    slow.write_text(TINY.replace("10 GB/s", "1 GB/s"))
    changed = job_of(tmp_path, plan, Changes(topology=load_topology(str(slow))))
    for request, before in zip(changed.requests, job_of(tmp_path, plan).requests, strict=True):
        assert request.predicted_s is not None
        assert before.predicted_s is not None
        crosses = request.kind is not RequestKind.SEND  # which stays inside the nodes
        assert (request.predicted_s > before.predicted_s) is crosses
    other = tmp_path / "other.yaml"
    other.write_text(TINY.replace("size: 4", "size: 8"))
    with pytest.raises(InputError, match="has levels node 2, gpu 8, the plan has node 2, gpu 4"):
        job_of(tmp_path, plan, Changes(topology=load_topology(str(other))))


def change(plan: Plan, edit: Callable[[Plan], None]) -> Plan:
    found = copy.deepcopy(plan)
    edit(found)
    return found


def step(plan: Plan, request: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = plan["requests"][request]["steps"][0]
    return found


EDITS: list[tuple[Callable[[Plan], None], str]] = [
    (lambda p: step(p).update(instruction="all-shuffle inside root"), "all-shuffle"),
    (lambda p: step(p).update(instruction="all-reduce inside rack"), "rack"),
    (lambda p: step(p).update(groups=[]), "step 1: has no groups"),
    (lambda p: step(p).update(groups=[[]]), "step 1: has no groups, or an empty one"),
    (lambda p: step(p).update(groups=[[0, 1], [1, 2]]), "a rank is in two groups"),
    (lambda p: step(p).update(groups=[[0, 8]]), "rank 8 is not among 0 to 7"),
    (lambda p: step(p).update(groups=[[0, 2**31 - 1]]), "rank 2147483647 is not among"),
    (lambda p: p["requests"][1].update(shards=[0]), "names 1 shards"),
    (lambda p: p["requests"][0].update(axes=["xx"]), "xx"),
    (lambda p: p.update(matrix=[[1, 1], [1, 1]]), "matrix"),
]


@pytest.mark.parametrize(("edit", "text"), EDITS)
def test_plans_that_cannot_be_run(
    tmp_path: Path, plan: Plan, edit: Callable[[Plan], None], text: str
) -> None:
    with pytest.raises(InputError, match=text):
        job_of(tmp_path, change(plan, edit))


def test_a_plan_that_computes_something_else_is_run(tmp_path: Path, plan: Plan) -> None:
    """Running is a check of its own, so nothing is refused that can be carried out."""

    def edit(plan: Plan) -> None:
        for request in plan["requests"][:1]:
            for one in request["steps"]:
                one["groups"] = [[0, 1], [2, 3], [4, 5], [6, 7]]

    job = job_of(tmp_path, change(plan, edit), Changes(payload_bytes=1000))
    result = reference(*job.requests)
    assert [found.verified for found in result.requests] == [False, True, True, True, True]


def test_shards_that_are_not_those_of_the_plan(tmp_path: Path, plan: Plan) -> None:
    changed = change(plan, lambda p: p["requests"][1]["shards"].reverse())
    result = reference(*job_of(tmp_path, changed, Changes(payload_bytes=100)).requests)
    (error, *_) = result.requests[1].errors
    assert "the plan says part" in error


def test_a_program(tiny: str) -> None:
    topology = load_topology(tiny)
    placement = Placement(((2, 2), (1, 2)))
    text = "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node"
    program = parse_program(text)
    job = program_job(topology, placement, [0], ALL, program, 1000, 3, "mine")
    (request,) = job.requests
    assert (job.ranks, request.chunks, request.name) == (8, 3, "mine")
    assert request.groups == ((0, 2, 4, 6), (1, 3, 5, 7))
    assert request.steps[0].groups == ((0, 2), (4, 6), (1, 3), (5, 7))
    assert request.steps[1].groups == ((0, 4), (2, 6), (1, 5), (3, 7))
    assert all(one.predicted_s is not None for one in request.steps)
    assert reference(request).verified


def test_a_program_that_cannot_be_carried_out_has_no_prediction(tiny: str) -> None:
    program = parse_program("reduce inside root; all-reduce inside root")
    (request,) = program_job(
        load_topology(tiny), Placement(((2, 4),)), [0], RequestKind.ALL_REDUCE, program, 64
    ).requests
    assert request.predicted_s is None
    (found,) = reference(request).requests
    (error,) = found.errors
    assert error.startswith("all-reduce: step 2: rank 1: holds other rows than rank 0")
