"""Mixtures part by part: the answer of a search in one piece, every pair in one cube, journals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from p2smt.api.journal_shares import strategy_share
from p2smt.api.journals import verify_journal
from p2smt.api.planning import launcher_lacks
from p2smt.errors import InputError
from p2smt.parallel_search.coordinate import search
from p2smt.parallel_search.parallel_options import InProcess, Spread
from p2smt.parallel_search.subproblem import OverBudget, Subproblem, SubproblemTask
from p2smt.parallelism.folded import pairs
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix
from p2smt.result import Status
from p2smt.training.axis_sizes import possible_sizes
from p2smt.training.search.plan import plan
from p2smt.training.search.question import PlanQuestion
from p2smt.training.search.subproblems import PlanSpace, plan_cache, plan_space, scale_of
from p2smt.training.strategy import AXES, Batch, Recompute
from tests.api.test_journal_shares import question as dense
from tests.oracles.mixture_plans import enumerated_mixtures
from tests.search.spaces.questions import Quiet
from tests.training.search.test_mixture_plans import SPACES, cluster, most
from tests.training.search.test_subproblems import told

FEW = cluster((2, 2), (1e8, 1e10))
SPACE = replace(SPACES["captured_in_part"], topology=FEW, most=most(tp=2, pp=2, ep=4))
NARROW = replace(
    SPACES["rules_on_both"],
    topology=FEW,
    most=most(tp=2, cp=2, pp=2, ep=4, etp=2),
    more={"rules": (AxisRule(5, 0, inside=True), FixedEntry(3, 1, 1))},
)
"""With a rule on a row of experts, and one on a row of attention."""
QUESTION = replace(SPACE.question, within=0.5, top=5)


def space_of(question: PlanQuestion) -> PlanSpace:
    return PlanSpace(question, scale_of(plan_cache(PlanSpace(question, 1.0)).known))


SIX = replace(
    SPACES["windows_on_six"],
    most=most(tp=2, cp=2, pp=2, ep=6, etp=2),
    rest={"zero": (1,), "dispatcher": ("alltoall",)},
    more={
        "launcher": "megatron",
        "lacks": launcher_lacks("megatron", Batch(24, 64)),
        "rules": (AxisRule(5, 0, inside=True),),
    },
)
NUMBERED = SIX.question
"""Ranks are numbered once; six ranks have parts that are none of a level."""


@pytest.mark.parametrize(
    "question", [QUESTION, NARROW.question, NUMBERED], ids=["plain", "rules", "numbered"]
)
@pytest.mark.parametrize("budget", [None, 1e-6])
def test_parts_answer_as_the_whole_does(question: PlanQuestion, budget: float | None) -> None:
    whole = plan(question)
    assert whole.status is Status.OPTIMAL
    assert told(plan(question, spread=Spread(budget_s=budget))) == told(whole)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SPACES)
def test_parts_answer_as_enumeration_does(name: str) -> None:
    space = SPACES[name]
    found = plan(space.question, spread=Spread())
    expected = enumerated_mixtures(space.question, space.most, space.again)
    assert told(found) == told(plan(space.question))
    assert found.best is not None
    assert found.best.iteration_s == pytest.approx(expected.best_s, rel=1e-9)


@pytest.mark.cluster
@pytest.mark.parametrize(
    "spread",
    [
        Spread(processes=2),
        pytest.param(Spread(engine="dask", processes=1), marks=pytest.mark.exhaustive),
    ],
    ids=["processes", "dask"],
)
def test_workers_answer_as_one_process_does(spread: Spread) -> None:
    if spread.engine == "dask":
        pytest.importorskip("distributed")
    assert told(plan(QUESTION, spread=spread)) == told(plan(QUESTION))


@pytest.mark.parametrize("kept", [1, 3])
def test_a_journal_that_ended_early_is_continued_and_verified(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "j.jsonl"
    whole = plan(QUESTION, spread=Spread(journal=str(path)))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:kept]) + lines[kept][:50])
    found = plan(QUESTION, spread=Spread(journal=str(path)))
    assert told(found) == told(whole) == told(plan(QUESTION))
    report = verify_journal(path, sample=None)
    assert (report.valid, report.proved) == (True, True)


@pytest.mark.parametrize("budget", [None, 1e-6])
def test_a_journal_of_ranks_numbered_once_is_verified(tmp_path: Path, budget: float | None) -> None:
    path = tmp_path / "j.jsonl"
    whole = plan(NUMBERED, spread=Spread(journal=str(path), budget_s=budget))
    assert told(whole) == told(plan(NUMBERED))
    report = verify_journal(path, sample=None)
    assert (report.valid, report.proved) == (True, True)


def test_a_journal_without_a_cube_covers_less(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    plan(NARROW.question, spread=Spread(journal=str(path), budget_s=1e-6))
    lines = path.read_text().splitlines(keepends=True)
    deep = [line for line in lines if '"closed"' in line and '"ed:' in line]
    path.write_text("".join(line for line in lines if line != deep[0]))
    report = verify_journal(path, sample=0)
    assert not report.valid


def every_pair(question: PlanQuestion, sizes: tuple[int, ...]) -> Iterator[Matrix]:
    """Without cubes: the rows of both matrices."""
    many = len(AXES)
    sides = sizes[:many], (sizes[0], *sizes[many:])
    for some in pairs(question.topology.sizes, *sides, question.rules):
        for one in some.placements():
            yield one.rows


def holds(cube: Subproblem, rows: Matrix) -> bool:
    names = ("pp", "dp", "cp", "tp", "ed", "ep", "et")
    texts = {f"{name}:{','.join(map(str, row))}" for name, row in zip(names, rows, strict=True)}
    return set(cube.path[1:]) <= texts


@pytest.mark.parametrize("rules", [(), (AxisRule(5, 0, inside=True), FixedEntry(0, 1, 1))])
def test_every_pair_is_in_one_cube_at_every_depth(
    rules: tuple[AxisRule | FixedEntry, ...],
) -> None:
    question = replace(NARROW.question, rules=rules)
    space, share = space_of(question), strategy_share(question)
    candidates = plan_cache(space).candidates
    names = question.axes
    found = {
        ",".join(f"{n}={s}" for n, s in zip(names, sizes, strict=True)): list(
            every_pair(question, tuple(sizes))
        )
        for sizes in candidates.sizes.tolist()
    }
    cubes = space.roots()
    assert share(Subproblem()) == sum(map(len, found.values())) > 0
    for _ in range(6):
        for cube in cubes:
            mine = [rows for rows in found[cube.path[0]] if holds(cube, rows)]
            assert share(cube) == len(mine)
            children = space.split(cube)
            assert not children or sum(map(share, children), Fraction(0)) == len(mine)
        cubes = tuple(child for one in cubes for child in (space.split(one) or (one,)))
    assert all(share(cube) <= 1 for cube in cubes)


SIZES = {
    **{name: space.question for name, space in SPACES.items()},
    "overlapped": replace(SPACE.question, fixed=(("overlap", True),), graphs="none", within=0.0),
    "whole_again": replace(
        SPACES["captured"].question, fixed=(("recompute", Recompute.FULL), ("ep", 4))
    ),
    "moments_in_16_bits": replace(
        SPACES["latent_in_fp8"].question,
        space=replace(SPACES["latent_in_fp8"].question.space, zero=None),
        optimizer_bytes=8,
    ),
    "all_to_all_captured": replace(
        SPACES["captured"].question,
        space=replace(SPACES["captured"].question.space, dispatcher=("alltoall",)),
    ),
    "dense_moments_in_16_bits": dense(optimizer_bytes=8),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_of_axes_are_those_of_the_space(name: str) -> None:
    question = SIZES[name]
    candidates = plan_cache(space_of(question)).candidates
    assert possible_sizes(question) == set(map(tuple, candidates.sizes.tolist()))


def test_members_are_made_again_and_what_is_none_is_refused() -> None:
    space = space_of(QUESTION)
    found = search(space, InProcess(space), top=QUESTION.top)
    assert found.status is Status.OPTIMAL
    for one in found.best:
        assert space.member(one.witness) == one
    data = json.loads(found.best[0].witness)
    sizes = QUESTION.topology.sizes
    wrong = {
        "expert_matrix": json.dumps([[1] * len(sizes)] * 4, separators=(",", ":")),
        "matrix": json.dumps([[1] * len(sizes)] * 4, separators=(",", ":")),
        "strategy": data["strategy"].replace("zero=1", "zero=0"),
    }
    for part, text in wrong.items():
        with pytest.raises(InputError):
            space.member(json.dumps({**data, part: text}))
    del data["expert_matrix"]
    with pytest.raises(InputError):
        space.member(json.dumps(data))


def test_a_description_makes_the_space_again() -> None:
    space = space_of(QUESTION)
    data = json.loads(json.dumps(space.description()))
    assert plan_space(data, lambda *_: lambda *_: ()) == space


def test_cubes_that_fix_rows_have_sides_of_their_own() -> None:
    """What cubes of the same sizes share of a side is not that of cubes with more rows."""
    space = space_of(NARROW.question)
    root = max(space.roots(), key=lambda cube: len(space.split(cube)))
    space.close(SubproblemTask(root), Quiet())
    for child in space.split(root):
        for deep in space.split(child):
            closed = space.close(SubproblemTask(deep), Quiet())
            assert not isinstance(closed, OverBudget)
            assert all(holds(deep, rows_of(one.witness)) for one in closed.best)


def rows_of(witness: str) -> Matrix:
    data = json.loads(witness)
    rows = (*json.loads(data["matrix"]), *json.loads(data["expert_matrix"])[1:])
    return tuple(map(tuple, rows))
