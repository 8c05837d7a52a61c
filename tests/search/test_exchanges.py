"""All-to-alls over levels, searched, priced, written, verified and run: small clusters by brute
force over every program."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from p2smt.api.files import write_plan
from p2smt.cluster.file import load_topology, parse_topology
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Form, RequestKind
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.parallelism.placement import ParallelismAxis, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.check.check_plan import check_plan
from p2smt.plans.file import read_plan
from p2smt.plans.given_program import cost_of, placed_programs
from p2smt.plans.restrictions import restriction_text
from p2smt.plans.solution import Solution
from p2smt.programs.program import Hierarchy, Program
from p2smt.result import SearchLimits, Status
from p2smt.runtime.payload import DataType, RunOptions
from p2smt.runtime.programs.plan_job import Changes, plan_job, requests_job
from p2smt.runtime.programs.reference_backend import run_reference
from p2smt.search.program_synthesis import Task, list_programs, request_programs
from p2smt.search.solve import solve
from p2smt.solvers.ask import Solver
from tests.cli.tools import cli
from tests.tiers import but_the_first

SMALL = parse_topology(
    """
name: small
levels:
  - {name: rack, size: 2, link: {kind: switch, bandwidth: 2 GB/s, latency: 30 us}}
  - {name: node, size: 2, link: {kind: switch, bandwidth: 10 GB/s, latency: 10 us}}
  - {name: gpu, size: 3, link: {kind: ring, bandwidth: 100 GB/s, latency: 1 us}}
""",
    "small",
)
H100 = load_topology("dgx-h100:16")
INSIDE = "all-to-all inside node; all-to-all parallel node in root"


def problem(topology: Topology, size: int, **more: Any) -> Problem:
    axis = ParallelismAxis("ep", topology.devices)
    return Problem(topology, (axis,), (Request(RequestKind.ALL_TO_ALL, ("ep",), size),), **more)


def every_program(hierarchy: Hierarchy) -> tuple[Program, ...]:
    result, _ = list_programs(Task(RequestKind.ALL_TO_ALL, hierarchy, 5), SearchLimits())
    return result.value or ()


def placements(found: Problem) -> list[Placement]:
    sizes = found.topology.sizes
    return [Placement((sizes,))]


def only(found: Solution) -> Any:
    assert found.best is not None
    return found.best.requests[0]


@pytest.mark.parametrize("size", but_the_first(1000, 12, 30_000_000))
@pytest.mark.parametrize("solver", list(Solver))
@pytest.mark.parametrize("library", but_the_first("nccl-2.30", None, "gloo"))
def test_the_answer_is_the_cheapest_of_all_programs(
    size: int, solver: Solver, library: str | None
) -> None:
    topology = SMALL if library is None else SMALL.under(library)
    asked = problem(topology, size)
    (placement,) = placements(asked)
    scene = Scene.of(topology, placement, (0,))
    times = {
        str(program): cost_of(asked, placement, [str(program)]).requests[0].seconds
        for program in every_program(scene.hierarchy)
    }
    answer = only(solve(asked, solver=solver))
    assert answer.status is Status.OPTIMAL
    assert answer.seconds == pytest.approx(min(times.values()), rel=1e-9)
    assert scene.least_s(asked.requests[0]) == pytest.approx(min(times.values()), rel=1e-12)
    several = answer.program is not None
    assert several is (min(times.values()) < times["all-to-all inside root"] * (1 - 1e-9))
    assert answer.single_s == times["all-to-all inside root"]


@pytest.mark.parametrize(("size", "several"), [(64 << 10, True), (64 << 20, False)])
def test_small_payloads_on_many_nodes_go_by_levels(size: int, several: bool) -> None:
    found = solve(problem(H100, size))
    answer = only(found)
    assert found.status is Status.OPTIMAL
    assert (str(answer.program) == INSIDE) is several
    assert answer.peak_bytes == 2 * size
    assert answer.payloads == (size,) * (1 + several)


def test_a_single_one_is_said_as_ever() -> None:
    answer = only(solve(problem(H100, 64 << 10, max_length=1)))
    assert (answer.program, answer.checked) == (None, "one fixed step")
    by_z3 = only(solve(problem(H100, 64 << 10, max_length=1), solver=Solver.Z3))
    assert by_z3.status is Status.OPTIMAL
    asked = problem(H100, 64 << 10, forbidden_forms=frozenset({Form.PARALLEL}))
    assert only(solve(asked)).program is None
    crossing_once = problem(H100, 64 << 10, step_limits=(("node", 0),))
    assert only(solve(crossing_once)).program is None


def test_without_time_it_is_no_proof() -> None:
    found = solve(problem(H100, 64 << 10), limits=SearchLimits(time_limit_s=0))
    answer = only(found)
    assert found.status is not Status.OPTIMAL
    assert answer.bound_s < answer.seconds
    assert answer.status in (Status.UNKNOWN, Status.FEASIBLE)


def test_z3_takes_what_cpsat_finds_on_more_ranks_than_it_holds() -> None:
    answer = only(solve(problem(H100, 64 << 10), solver=Solver.Z3))
    assert (str(answer.program), answer.status) == (INSIDE, Status.FEASIBLE)


def test_axes_beside_it_keep_their_groups() -> None:
    axes = (ParallelismAxis("dp", 2), ParallelismAxis("ep", 6))
    requests = (
        Request(RequestKind.ALL_REDUCE, ("dp",), 1 << 20),
        Request(RequestKind.ALL_TO_ALL, ("ep",), 3000),
    )
    found = solve(Problem(SMALL.under("nccl-2.30"), axes, requests))
    assert found.status is Status.OPTIMAL


def test_listing_of_a_request() -> None:
    asked = problem(SMALL, 1000)
    (placement,) = placements(asked)
    listed = request_programs(asked, placement, asked.requests[0])
    assert (listed.status, listed.count_by_length) == (Status.COMPLETE, (1, 4, 6, 0, 0))
    best = request_programs(asked, placement, asked.requests[0], top=2)
    assert [len(best.programs), best.by_time] == [2, True]
    flat = Problem(
        SMALL,
        (ParallelismAxis("ep", 3), ParallelismAxis("dp", 4)),
        (Request(RequestKind.ALL_TO_ALL, ("ep",), 3),),
    )
    one = request_programs(flat, Placement(((1, 1, 3), (2, 2, 1))), flat.requests[0])
    assert one.note == "one fixed step"


def test_texts_are_for_all_to_alls_or_for_none_of_them() -> None:
    axes = (ParallelismAxis("dp", 12),)
    requests = tuple(
        Request(kind, ("dp",), 1200) for kind in (RequestKind.ALL_REDUCE, RequestKind.ALL_TO_ALL)
    )
    asked, placement = Problem(SMALL, axes, requests), Placement((SMALL.sizes,))

    def programs(*texts: str) -> list[str | None]:
        found = placed_programs(asked, placement, texts)
        return [None if one.program is None else str(one.program) for one in found]

    single = "all-reduce inside root"
    assert programs() == programs("single") == programs("single", "single") == [single, None]
    assert programs("single", INSIDE) == [single, INSIDE]
    assert programs("single", "all-to-all inside root") == [single, None]
    with pytest.raises(InputError, match=r"that have programs are all-reduce .*all-to-all"):
        programs("single", INSIDE, INSIDE)
    send = replace(asked, requests=(Request(RequestKind.SEND, ("dp",), 1),))
    with pytest.raises(InputError, match="a send is one fixed step"):
        placed_programs(send, placement, ["single"])


# A plan, its checks and its runs.


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    write_plan(solve(problem(SMALL.under("nccl-2.30"), 1001)), path)
    return path


def data(plan: Path) -> Any:
    return json.loads(plan.read_text())


def checked(found: Any, folder: Path) -> list[str]:
    path = folder / "changed.json"
    path.write_text(json.dumps(found))
    report = check_plan(read_plan(str(path)), "changed.json")
    return [
        *(broken.message for _, broken in report.violations),
        *(note.message for note in report.notes),
    ]


def test_a_plan_verifies_and_is_proved(plan: Path) -> None:
    found = data(plan)["requests"][0]
    assert found["program"]
    assert len(found["steps"]) > 1
    assert check_plan(read_plan(str(plan)), "plan").valid
    proved = cli("verify", "--prove", str(plan))
    assert "optimality: proved" in proved.out


def _swap_groups(request: Any) -> None:
    first, second = request["steps"][:2]
    first["groups"], second["groups"] = second["groups"], first["groups"]


def _repeat(request: Any) -> None:
    request["steps"][1] = request["steps"][0]
    texts = [step["instruction"] for step in request["steps"]]
    request["program"] = "; ".join(texts)


def _drop(request: Any) -> None:
    request["steps"].pop()
    request["program"] = "; ".join(step["instruction"] for step in request["steps"])


CHANGES: Sequence[tuple[Callable[[Any], None], str]] = (
    (_swap_groups, "groups are not those of its instruction"),
    (_repeat, "a step before it crossed one of its levels"),
    (_drop, "holds the block from"),
    (lambda r: r["steps"].pop(), "instructions of the steps are not those of the program"),
    (lambda r: r.update(peak_bytes=1001), "peak_bytes says 1001, it needs 2002"),
    (lambda r: r["steps"][0].update(payload_bytes=500.5), "payload_bytes says 500.5"),
    (lambda r: r.update(seconds=r["seconds"] / 2), "seconds says"),
    (lambda r: r.update(single_collective_s=r["seconds"]), "single_collective_s says"),
    (lambda r: r.update(chunks=2), "it has 2"),
)


@pytest.mark.parametrize(("change", "text"), CHANGES)
def test_a_changed_plan_is_refuted(
    plan: Path, tmp_path: Path, change: Callable[[Any], None], text: str
) -> None:
    found = data(plan)
    change(found["requests"][0])
    assert any(text in said for said in checked(found, tmp_path)), checked(found, tmp_path)


def test_restrictions_hold_the_steps_of_a_plan(plan: Path, tmp_path: Path) -> None:
    found = data(plan)
    said = {"kind": "max-length", "instructions": 1}
    found["restrictions"] = [{**said, "text": restriction_text(said)}]
    assert any("it has 2" in said or "it has 3" in said for said in checked(found, tmp_path))


@pytest.mark.parametrize("dtype", but_the_first(DataType.FLOAT32, DataType.INT64))
def test_every_block_arrives_on_the_reference(plan: Path, dtype: DataType) -> None:
    job = plan_job(read_plan(str(plan)), "plan", Changes())
    reports = run_reference(job, RunOptions(backend="reference", data_type=dtype))
    assert [run.errors for report in reports for run in report.requests] == [[]] * 12
    assert all(run.checked for report in reports for run in report.requests)


def test_the_executor_exchanges_each_level_as_often_as_it_is_told() -> None:
    """Of all sequences of up to three steps: a second exchange over a level undoes the first, so
    results are right where each level is crossed an odd number of times; once in valid ones."""
    asked = problem(SMALL, 12 * 4 * 5 + 4)
    (placement,) = placements(asked)
    hierarchy = Scene.of(SMALL, placement, (0,)).hierarchy
    programs = every_program(hierarchy)
    known = sorted({i for p in programs for i in p.instructions}, key=str)
    options = RunOptions(backend="reference", data_type=DataType.INT64)
    for count in (2, 3):
        for chosen in product(known, repeat=count):
            program = Program(chosen)
            job = requests_job(asked, placement, [program])
            reports = run_reference(job, options)
            wrong = any(run.errors for report in reports for run in report.requests)
            crossed = [0, 0, 0]
            for grouping in map(hierarchy.grouping, chosen):
                for level in range(grouping.outer, grouping.inner):
                    crossed[level] += 1
            assert wrong is any(times % 2 == 0 for times in crossed), str(program)
            assert (program in programs) is (crossed == [1, 1, 1])


@pytest.mark.parametrize("target", ["python", "jax"])
def test_code_refuses_several_by_name(plan: Path, target: str) -> None:
    found = cli("export", str(plan), "--to", target)
    assert found.code == 2
    assert "is several all-to-alls, one after the other" in found.err


@pytest.mark.parametrize("ending", ["xml", "json", "yaml"])
def test_schedules_refuse_several_by_name(plan: Path, ending: str, tmp_path: Path) -> None:
    from p2smt.interop.plan_export import export_plan

    with pytest.raises(InputError, match="several all-to-alls, one after the other"):
        export_plan(read_plan(str(plan)), 0, str(tmp_path / f"x.{ending}"))
