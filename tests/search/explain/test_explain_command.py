"""`solve --explain`: what it prints, its JSON, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import p2smt
from p2smt.cli.codes import BAD_INPUT
from p2smt.plans.explanation import (
    ChangedNumber,
    Explanation,
    NearestTippingPoint,
    TippingPointOutcome,
)
from p2smt.plans.solution import Solution
from p2smt.report.outputs.shape import printed
from p2smt.report.solution_data import solution_data
from p2smt.report.solution_tables import solution_tables
from p2smt.report.tables import console
from p2smt.report.tipping_points import tipping_point_text
from p2smt.result import SearchLimits, StopWatch
from p2smt.search.explain.explain import explanation
from p2smt.search.programs_pipelined import Catalogs
from p2smt.solvers.ask import Solver
from tests.cli.tools import TINY, assert_one_error, cli

ASKED = ("-a", "dp=2,tp=4", "--reduce", "dp=1GiB", "--reduce", "tp=64MiB*4")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("explain") / "tiny.yaml"
    path.write_text(TINY)
    return str(path)


@pytest.fixture(scope="module")
def solution(tiny: str) -> Solution:
    topology = p2smt.load_topology(tiny)
    requests = (p2smt.reduce("dp=1GiB"), p2smt.reduce("tp=64MiB*4"))
    problem = p2smt.Problem(topology, p2smt.parse_axes("dp=2,tp=4"), requests)
    return p2smt.solve(problem, explain=True)


@pytest.fixture(scope="module")
def data(solution: Solution) -> dict[str, Any]:
    return printed(solution_data(solution))


def test_the_text_has_flips_and_claims(solution: Solution, data: dict[str, Any]) -> None:
    screen = console()
    with screen.capture() as captured:
        screen.print(solution_tables(solution))
    out = captured.get()
    assert "another answer wins once a number is off by (solved again on both sides)" in out
    assert f"nearest flip: {data['explanation']['nearest']}" in out
    by_hardware = data["explanation"]["nearest_by_hardware"]
    told = by_hardware not in (None, data["explanation"]["nearest"])
    assert ("nearest flip by hardware: " in out) is told
    assert "exact: none is nearer" in out
    assert "for every hardware (rings with one protocol" in out
    for claim in data["explanation"]["programs"]:
        assert claim["request"] in out


def test_the_json_has_every_number_both_ways(data: dict[str, Any]) -> None:
    found = data["explanation"]
    assert (found["linear"], found["why"], found["searched"]) == (True, None, 16)
    own = [flip for flip in found["flips"] if flip["request"] is None]
    keys = [(flip["what"], flip["of"], flip["grows"]) for flip in own]
    assert len(set(keys)) == len(keys) == 2 * (2 + 2 + 2)
    for flip in found["flips"]:
        assert (flip["factor"] is None) is (flip["outcome"] != "flip")
        assert flip["proved"]
        if flip["factor"] is not None:
            assert float(Fraction(flip["exact"])) == pytest.approx(flip["factor"])
            assert (flip["matrix"] is None) is (flip["request"] is not None)
    assert found["placements"]["whole"]


def test_without_the_option_there_is_none(tiny: str) -> None:
    assert cli("solve", "-t", tiny, *ASKED, "--json").json()["explanation"] is None


def test_what_is_not_proved_is_not_explained(tiny: str) -> None:
    done = cli("solve", "-t", tiny, *ASKED, "--explain", "--time-limit", "0.0001")
    assert "not explained: the answer is not proved to be the best one" in done.out


def test_chunks_are_refused(tiny: str) -> None:
    done = cli("solve", "-t", tiny, *ASKED, "--explain", "--pipeline", "auto")
    assert done.code == BAD_INPUT
    assert_one_error(done)
    assert "leave out the pipeline" in done.err


def test_the_time_being_over_leaves_numbers_open(tiny: str) -> None:
    topology = p2smt.load_topology(tiny)
    requests = (p2smt.reduce("dp=1GiB"), p2smt.reduce("tp=64MiB*4"))
    problem = p2smt.Problem(topology, p2smt.parse_axes("dp=2,tp=4"), requests)
    found = p2smt.solve(problem)
    over = StopWatch.start(SearchLimits(time_limit_s=0.0))
    said = explanation(found, over, Solver.CPSAT, Catalogs())
    assert said.why or {one.outcome for one in said.flips} == {TippingPointOutcome.OPEN}
    assert said.nearest() is None


@pytest.mark.parametrize(
    ("number", "factor", "text"),
    [
        (ChangedNumber("bandwidth", "node", 0, False), 1.4, "node links 1.4x slower"),
        (ChangedNumber("latency", "gpu", 1, True), 12.0, "gpu latencies 12x longer"),
        (ChangedNumber("call", None, 0, True), 1.004, "calls 1.004x dearer"),
        (ChangedNumber("payload", "all-reduce dp 1 GiB", 0, False), 2.0, "1 GiB 2x smaller"),
        (ChangedNumber("bandwidth", "gpu", 1, True), 1.0, "gpu links ever so little faster"),
    ],
)
def test_a_flip_in_words(number: ChangedNumber, factor: float, text: str) -> None:
    flip = NearestTippingPoint(
        number, None, TippingPointOutcome.FLIP, factor, matrix=((2, 1), (1, 4))
    )
    assert tipping_point_text(flip).startswith("with ")
    assert f"{text}, placement [[2,1],[1,4]] wins" in tipping_point_text(flip)
    assert Explanation((flip,)).nearest() == flip


def test_hardware_and_payloads_have_their_own_nearest_flip() -> None:
    numbers = [
        ChangedNumber("payload", "all-reduce dp 1 GiB", 0, True),
        ChangedNumber("bandwidth", "gpu", 1, True),
        ChangedNumber("call", None, 0, True),
    ]
    flips = [
        NearestTippingPoint(number, None, TippingPointOutcome.FLIP, factor, matrix=((2, 1), (1, 4)))
        for number, factor in zip(numbers, (1.1, 3.0, 2.0), strict=True)
    ]
    found = Explanation(tuple(flips))
    assert found.nearest() == flips[0]
    assert found.nearest(hardware=True) == flips[2]
    assert Explanation(tuple(flips[:1])).nearest(hardware=True) is None
