"""Programs and plans as schedules: right in every group, by every algorithm, in any pieces."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from p2smt.cluster.file import load_topology
from p2smt.collectives.contract import contract
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.plans.file import read_plan
from p2smt.plans.file_model import AnyPlan
from p2smt.programs.program import Hierarchy, parse_program
from p2smt.schedules.lower.assemble import DEFAULT, Lowering, lower_program, schedule_of_steps
from p2smt.schedules.lower.lowered_request import lower_groups, together
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.report import Kind, Verdict
from p2smt.schedules.verify.verify import verify
from tests.cli.tools import EVERY_KIND, cli
from tests.schedules.greedy_run import GreedyRun

AR, RS, AG = RequestKind.ALL_REDUCE, RequestKind.REDUCE_SCATTER, RequestKind.ALL_GATHER
PROGRAMS = [
    (AR, "all-reduce inside root"),
    (AR, "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1"),
    (AR, "reduce inside l1; all-reduce master l1 in root; broadcast inside l1"),
    (AR, "reduce inside root; broadcast inside root"),
    (AR, "all-reduce parallel l1 in root; reduce-scatter inside l1; all-gather inside l1"),
    (RS, "reduce-scatter inside root"),
    (RS, "reduce-scatter inside l1; reduce-scatter parallel l1 in root"),
    (AG, "all-gather inside root"),
    (AG, "all-gather parallel l1 in root; all-gather inside l1"),
]
ALGORITHMS = ["ring", "tree", "direct"]


def right(schedule: Schedule) -> None:
    report = verify(schedule, fifo_depth=1)
    assert (report.verdict, report.violations, report.warnings) == (Verdict.VALID, (), ())
    assert GreedyRun(schedule, 1, seed=1).right


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("kind", "text"), PROGRAMS)
@pytest.mark.parametrize("factors", [(2, 2), (2, 3), (3, 2)])
def test_programs(kind: RequestKind, text: str, factors: tuple[int, ...], algorithm: str) -> None:
    hierarchy, program = Hierarchy.plain(factors), parse_program(text)
    for how in (Lowering(algorithm), Lowering(algorithm, pieces=2, in_place=False)):
        right(lower_program(program, hierarchy, kind, how))


@pytest.mark.parametrize(("kind", "text"), PROGRAMS)
def test_groups_beside_each_other(kind: RequestKind, text: str) -> None:
    groups = [(0, 2, 4, 6), (1, 3, 5, 7)]
    hierarchy = Hierarchy.plain((2, 2))
    schedule = lower_program(parse_program(text), hierarchy, kind, groups=groups)
    right(schedule)
    assert schedule.contract.collective == "custom"
    assert all(
        {p.rank % 2 for p in goal.parts} == {goal.rank % 2} for goal in schedule.contract.goals
    )


def test_one_group_has_the_contract_of_its_collective() -> None:
    hierarchy = Hierarchy.plain((3,))
    for kind, name in ((AR, "allreduce"), (RS, "reduce_scatter"), (AG, "allgather")):
        program = parse_program(f"{kind.value} inside root")
        for in_place in (True, False):
            found = lower_program(program, hierarchy, kind, Lowering(in_place=in_place))
            chunks = min(found.sizes[0].input, found.sizes[0].output)
            assert found.contract == contract(name, 3, chunks, in_place=in_place)


def test_shards_in_the_order_that_the_program_leaves() -> None:
    text = "reduce-scatter inside l1; reduce-scatter parallel l1 in root"
    found = lower_program(parse_program(text), Hierarchy.plain((2, 2)), RS)
    assert {(g.rank, g.parts[0].chunk) for g in found.contract.goals} == {
        *((0, 0), (2, 1)),
        *((1, 2), (3, 3)),
    }
    assert found.contract.shift == (0, -2, -1, -3)
    assert found.contract.collective == "custom"


def test_rows_are_cut_as_fine_as_rings_need() -> None:
    text = "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1"
    program, hierarchy = parse_program(text), Hierarchy.plain((3, 2))
    assert lower_program(program, hierarchy).sizes[0].output == 6
    flat = parse_program("reduce inside l1; all-reduce master l1 in root; broadcast inside l1")
    assert lower_program(flat, Hierarchy.plain((4, 3)), how=Lowering("tree")).sizes[0].output == 12
    uneven = parse_program("reduce-scatter inside l1; all-gather inside l1; all-reduce inside root")
    assert lower_program(uneven, Hierarchy.plain((2, 3))).sizes[0].output == 6


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("all-reduce inside l1; all-reduce inside root", Kind.DOUBLED),
        ("all-reduce inside l1", Kind.MISSING),
        ("reduce inside root", Kind.MISSING),
    ],
)
def test_wrong_programs_are_refuted(text: str, kind: Kind) -> None:
    report = verify(lower_program(parse_program(text), Hierarchy.plain((2, 2))))
    assert report.verdict is Verdict.INVALID
    assert kind in {violation.kind for violation in report.violations}


@pytest.mark.parametrize(
    ("text", "factors", "words"),
    [
        (
            "reduce inside l1; all-reduce inside root",
            (2, 3),
            "rank 1: holds other rows than rank 0",
        ),
        ("all-gather inside root", (2, 3), "brings a row that another member brings too"),
        ("reduce-scatter inside root; reduce-scatter inside l1", (2, 3), "holds other rows"),
        ("reduce-scatter inside l1; reduce-scatter inside root", (2, 2), "holds other rows"),
        ("reduce inside root; reduce inside root", (2, 2), "holds other rows"),
        ("all-reduce inside rack", (2, 3), "is not in the hierarchy"),
    ],
)
def test_programs_that_cannot_move_their_rows(
    text: str, factors: tuple[int, ...], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        lower_program(parse_program(text), Hierarchy.plain(factors))


def test_rows_that_do_not_split() -> None:
    steps = [(Collective.REDUCE_SCATTER, [(0, 1, 2)])]
    with pytest.raises(InputError, match="4 rows do not split over 3 members"):
        schedule_of_steps("odd", RS, [(0, 1, 2, 3)], steps)


def test_limits() -> None:
    program = parse_program("all-reduce inside root")
    with pytest.raises(InputError, match="at most 1024"):
        lower_program(program, Hierarchy.plain((2048,)))
    with pytest.raises(InputError, match="chunks: at most"):
        lower_program(program, Hierarchy.plain((1024,)), how=Lowering(pieces=1024))
    with pytest.raises(InputError, match="algorithm 'magic'"):
        Lowering("magic")
    with pytest.raises(InputError, match="pieces"):
        Lowering(pieces=0)


def model(folder: Path, plan: dict[str, Any]) -> AnyPlan:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    return read_plan(str(path))


def in_one(plan: AnyPlan, request: int, how: Lowering = DEFAULT) -> Schedule:
    """All groups of a request as one schedule, in which rank r is device r."""
    return together(lower_groups(plan, request, how), len(plan.ranks))


def test_every_request_of_a_plan(tmp_path: Path, plan: dict[str, Any]) -> None:
    read = model(tmp_path, plan)
    found = [in_one(read, number) for number in range(len(read.requests))]
    for schedule in found:
        right(schedule)
        assert schedule.ranks == 8
    assert [schedule.name for schedule in found] == [
        *("all-reduce tp", "reduce-scatter tp", "all-gather dp+tp"),
        *("all-to-all tp", "send dp"),
    ]


def test_pieces_of_a_pipelined_plan(tmp_path: Path, tiny: str) -> None:
    data = cli("solve", "-t", tiny, *EVERY_KIND, "--pipeline", "4", "--json").json()["plan"]
    read = model(tmp_path, data)
    assert any(request.chunks > 1 and len(request.steps) > 1 for request in read.requests)
    for number, request in enumerate(read.requests):
        for algorithm in ALGORITHMS:
            schedule = in_one(read, number, Lowering(algorithm))
            right(schedule)
            whole = max(schedule.sizes[0].input, schedule.sizes[0].output)
            if len(request.steps) > 1:
                assert whole % request.chunks == 0


def test_a_plan_that_claims_other_shards_is_refuted(tmp_path: Path, plan: dict[str, Any]) -> None:
    changed = copy.deepcopy(plan)
    shards = changed["requests"][1]["shards"]
    shards[0], shards[1] = shards[1], shards[0]
    report = verify(in_one(model(tmp_path, changed), 1))
    assert report.verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("number", "change", "words"),
    [
        (5, {}, "request 6: the requests are 1 to 5"),
        (1, {"shards": [0, 0, 1, 2]}, "each once"),
        (1, {"shards": [0]}, "are not the rows"),
        (0, {"groups": [[0, 99]]}, "not a group inside one reduction group"),
        (0, {"groups": [[0, 0]]}, "not disjoint groups"),
        (2, {"groups": []}, None),
        (3, {"groups": [[0, 1]]}, "not of 4 ranks"),
        (3, {"groups": [[0, 1, 2, 8]]}, "not a group inside one reduction group"),
    ],
)
def test_plans_that_do_not_fit(
    tmp_path: Path,
    plan: dict[str, Any],
    number: int,
    change: dict[str, Any],
    words: str | None,
) -> None:
    changed = copy.deepcopy(plan)
    if "shards" in change:
        changed["requests"][number]["shards"] = change["shards"]
    if "groups" in change:
        changed["requests"][number]["steps"][0]["groups"] = change["groups"]
    read = model(tmp_path, changed)
    if words is None:
        assert verify(in_one(read, number)).verdict is Verdict.INVALID
        return
    with pytest.raises(InputError, match=words):
        in_one(read, number)


def test_a_program_on_a_placement(tiny: str) -> None:
    topology = load_topology(tiny)
    placement = Placement(((2, 2), (1, 2)))
    text = "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node"
    placed = [tuple(group) for group in placement.groups((0,)).tolist()]
    hierarchy = Scene.of(topology, placement, (0,)).hierarchy
    schedule = lower_program(parse_program(text), hierarchy, groups=placed)
    right(schedule)
    groups = {tuple(sorted({p.rank for p in goal.parts})) for goal in schedule.contract.goals}
    assert groups == set(placed)
