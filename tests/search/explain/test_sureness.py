"""What is said of how sure an explanation is: nothing open is called exact, nor what is tried."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import p2smt
from p2smt.cluster.file import parse_topology
from p2smt.collectives.names import Form
from p2smt.plans.explanation import (
    ChangedNumber,
    Explanation,
    NearestTippingPoint,
    PlacementClaim,
    ProgramClaim,
    ProgramVerdict,
    TippingPointOutcome,
)
from p2smt.plans.solution import Solution
from p2smt.programs.program import Program
from p2smt.report.outputs.shape import json_of
from p2smt.report.solution_data import explanation_data
from p2smt.report.solution_tables import by_subject, explanation_lines, how_sure
from p2smt.report.tables import console
from p2smt.result import SearchLimits, StopWatch
from p2smt.search.explain.explain import _priced
from p2smt.search.explain.linear import LinearCosts, landscape
from p2smt.search.explain.numbers import SampledCosts, numbers_of
from p2smt.search.programs_pipelined import Catalogs
from tests.cli.tools import TINY

OTHER = ((2, 1), (1, 4))
GPU = ChangedNumber("bandwidth", "gpu", 1, False)
NODE = ChangedNumber("bandwidth", "node", 0, False)
PAYLOAD = ChangedNumber("payload", "all-reduce dp 1 GiB", 0, True)
WON = NearestTippingPoint(
    GPU, None, TippingPointOutcome.FLIP, 6.74, proved=True, tried=9, matrix=OTHER
)
OPEN = NearestTippingPoint(NODE, None, TippingPointOutcome.OPEN, why="the time is over")
NONE = NearestTippingPoint(NODE, None, TippingPointOutcome.NONE, proved=True, tried=9)
ALONE = PlacementClaim(0, 0, (), 0, (), True)


def solved(axes: str = "dp=2,tp=4", *, algorithms: str = "ring", length: int = 5) -> Solution:
    text = TINY.replace("[ring]", f"[{algorithms}]")
    topology, asked = parse_topology(text, "tiny"), (p2smt.reduce("dp=1GiB"),)
    problem = p2smt.Problem(topology, p2smt.parse_axes(axes), asked, max_length=length)
    return p2smt.solve(problem, explain=algorithms == "tree" or length == 1)


@pytest.fixture(scope="module")
def plain() -> Solution:
    return solved()


def said(solution: Solution, found: Explanation) -> str:
    assert solution.best is not None
    screen = console()
    with screen.capture() as captured:
        for line in explanation_lines(solution, solution.best, found):
            screen.print(line)
    return captured.get()


def flips(*found: NearestTippingPoint) -> Explanation:
    return Explanation(found, placements=ALONE, linear=True)


def test_an_open_flip_leaves_the_nearest_one_unproved(plain: Solution) -> None:
    """Beside the one that was found another may be nearer."""
    text = said(plain, flips(WON, OPEN))
    assert "nearest flip found so far (1 not settled): with gpu links 6.74x slower" in text
    assert "exact" not in text
    assert "none is nearer" not in text
    assert "not settled (the time is over): node links slower" in text


def test_the_json_says_the_same() -> None:
    for found, proved, unsettled in ((flips(WON, OPEN), False, 1), (flips(WON, NONE), True, 0)):
        data = json_of(explanation_data(found))
        assert data is not None
        assert (data["nearest_proved"], data["nearest_unsettled"]) == (proved, unsettled)
    assert Explanation(why="none").nearest_proved() is False


def test_an_open_payload_leaves_hardware_settled(plain: Solution) -> None:
    found = flips(WON, NONE, replace(OPEN, number=PAYLOAD))
    data = json_of(explanation_data(found)) or {}
    assert (data["nearest_proved"], data["nearest_unsettled"]) == (False, 1)
    assert data["nearest_by_hardware_proved"] is True
    assert data["nearest_by_hardware_unsettled"] == 0
    assert "exact" not in said(plain, found)


def test_only_open_flips_are_no_proof_that_there_is_none(plain: Solution) -> None:
    text = said(plain, flips(OPEN, replace(OPEN, number=GPU)))
    assert "exact" not in text
    assert "none up to" not in text
    assert flips(OPEN).nearest_proved() is False


def test_what_is_exact_is_said_of_its_own_subject(plain: Solution) -> None:
    name = "all-reduce dp 1 GiB"
    text = said(plain, flips(WON, NONE, replace(OPEN, request=name)))
    assert "nearest flip: with gpu links" in text
    assert "exact for the placement: none is nearer" in text
    text = said(plain, flips(OPEN, WON, replace(NONE, request=name)))
    assert f"exact for the program of {name}: none is nearer" in text
    assert "exact: " not in text


@given(
    st.lists(
        st.builds(
            NearestTippingPoint,
            st.just(GPU),
            st.sampled_from([None, "a", "b"]),
            st.sampled_from(TippingPointOutcome),
            proved=st.booleans(),
            tried=st.integers(0, 3),
        ),
        max_size=6,
    )
)
def test_exact_are_the_subjects_without_any_open_or_tried_flip(
    found: list[NearestTippingPoint],
) -> None:
    subjects = by_subject(found)
    (line, *_) = [*(line for line in how_sure(subjects) if line.startswith("exact")), ""]
    doubted = [f for f in found if not f.proved or f.outcome is TippingPointOutcome.OPEN]
    sure = [name for name in subjects if name not in by_subject(doubted)]
    if not sure:
        assert line == ""
    elif len(sure) == len(subjects):
        assert line.startswith("exact: ")
    else:
        assert line.startswith(f"exact for {', '.join(sure)}: ")


def test_trees_are_no_lines_and_nothing_of_them_is_exact() -> None:
    """Filling a tree takes a square root of the payload."""
    solution = solved("dp=8", algorithms="tree")
    found = solution.explanation
    assert found is not None
    assert found.flips
    assert found.linear is False
    assert not any(flip.proved or flip.exact for flip in found.flips)
    text = said(solution, found)
    assert "exact" not in text
    assert "between them none was looked for" in text
    assert "the answer itself is not of this model" in text


@pytest.mark.parametrize(
    ("algorithms", "linear"), [("ring", True), ("tree", False), ("ring, tree", False)]
)
def test_one_tree_is_enough_for_the_numeric_model(
    plain: Solution, algorithms: str, linear: bool
) -> None:
    topology = parse_topology(TINY.replace("[ring]", f"[{algorithms}]"), "tiny")
    problem, best = replace(plain.problem, topology=topology), plain.best
    assert best is not None
    watch = StopWatch.start(SearchLimits())
    land = landscape(problem, best, [], LinearCosts(problem), Catalogs(), watch)
    priced = _priced(land)
    assert isinstance(priced.costs, LinearCosts if linear else SampledCosts)
    if not linear:
        table, number = land.table(best.matrix or (), 0), next(numbers_of(problem))
        with pytest.raises(p2smt.InputError, match="square root"):
            LinearCosts(problem).lines(number, table)


def test_what_is_said_of_all_programs_says_of_which(plain: Solution) -> None:
    best = ProgramClaim("it", Program(()), ProgramVerdict.BEST, (Program(()),))
    found = Explanation(programs=(best,), placements=ALONE, linear=True)
    line = "no program of at most 5 instructions is ever cheaper on this placement"
    assert line in said(plain, found)
    fewer = replace(plain.problem, max_length=1, forbidden_forms=frozenset({Form.PARALLEL}))
    text = said(replace(plain, problem=fewer), found)
    assert "no program of at most 1 instruction that the restrictions allow is ever" in text


def test_one_other_program_that_is_enough_is_named(plain: Solution) -> None:
    (answer, *_) = plain.best.requests if plain.best else ()
    assert answer.program is not None
    other = ProgramClaim("it", Program(()), ProgramVerdict.OTHER, (answer.program,))
    text = said(plain, Explanation(programs=(other,), placements=ALONE))
    assert "it: another program is enough, no program of at most 5 instructions is ever" in text
    assert f"    {answer.program}" in text
    assert "none of the 1" not in text


def test_a_program_without_rivals_was_tried_at_no_factors(plain: Solution) -> None:
    alone = NearestTippingPoint(GPU, "it", TippingPointOutcome.NONE, proved=False, tried=0)
    text = said(plain, flips(alone))
    assert "tried 0" not in text
    assert "none found up to 16x for the program of it" in text
    assert "only solved again at 16x; nearer nothing was looked for" in text


def test_none_excluded_is_no_claim(plain: Solution) -> None:
    placed = PlacementClaim(2, 0, (OTHER, ((1, 4), (2, 1))), 0, (), True)
    text = said(plain, Explanation(placements=placed, linear=True))
    assert "of 2 other placements none could be excluded" in text
    assert "never better" not in text
