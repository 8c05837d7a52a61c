"""Lists of programs of a request on a placement: all, the best ones, or why there are none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p2smt.cluster.file import parse_topology
from p2smt.collectives.names import Form
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem, Request, all_to_all, parse_axes, reduce, send
from p2smt.plans.given_program import cost_of
from p2smt.result import SearchLimits, Status
from p2smt.search.program_synthesis import request_programs
from p2smt.solvers.ask import ask
from tests.cli.tools import TINY, cli

PLACEMENT = Placement(((1, 2), (2, 2)))


def problem(request: Request) -> Problem:
    cluster = parse_topology(TINY, "tiny")
    return Problem(cluster, parse_axes("dp=2,tp=4"), (request,), max_length=3)


def test_all_are_listed_and_counted_by_length() -> None:
    asked = problem(reduce("tp=1GiB"))
    found = request_programs(asked, PLACEMENT, asked.requests[0])
    assert found.status is Status.COMPLETE
    assert found.count_by_length == (1, 4, 19)
    assert len(found.programs) == 24
    assert {listed.seconds for listed in found.programs} == {None}


def test_the_best_are_the_cheapest_of_all() -> None:
    asked = problem(reduce("tp=1GiB"))
    (request,) = asked.requests
    every = request_programs(asked, PLACEMENT, request).programs
    texts = [str(listed.program) for listed in every]
    seconds = sorted(cost_of(asked, PLACEMENT, [text]).objective_s for text in texts)
    best = request_programs(asked, PLACEMENT, request, top=5)
    assert best.by_time
    assert [p.seconds for p in best.programs] == pytest.approx(seconds[:5], rel=1e-9)
    shortest = request_programs(asked, PLACEMENT, request, top=5, timed=False)
    assert shortest.count_by_length == (1, 4, 0)


def test_restrictions_of_the_problem_hold() -> None:
    asked = problem(reduce("tp=1GiB"))
    forbidden = replace(asked, forbidden_forms=frozenset(Form))
    assert request_programs(forbidden, PLACEMENT, asked.requests[0]).programs == ()
    limited = replace(asked, step_limits=(("node", 0),))
    assert request_programs(limited, PLACEMENT, asked.requests[0]).programs == ()


@pytest.mark.parametrize("request_", [send("tp=1MiB"), all_to_all("dp=1MiB")], ids=str)
def test_what_is_one_fixed_step_has_none(request_: Request) -> None:
    found = request_programs(problem(request_), PLACEMENT, request_)
    assert (found.status, found.programs, found.note) == (Status.COMPLETE, (), "one fixed step")


def test_a_list_that_is_cut_short_says_so() -> None:
    asked = problem(reduce("tp=1GiB"))
    limits = SearchLimits(max_answers=2)
    found = request_programs(asked, PLACEMENT, asked.requests[0], limits=limits)
    assert (found.status, len(found.programs)) == (Status.TRUNCATED, 2)


def test_a_placement_of_other_sizes_is_refused() -> None:
    asked = problem(reduce("tp=1GiB"))
    with pytest.raises(InputError, match="column products"):
        request_programs(asked, Placement(((2, 1), (2, 2))), asked.requests[0])


def test_requests_share_one_time_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    left: list[float] = []

    def seen(problem: Any, question: Any, solver: Any, limits: SearchLimits) -> Any:
        left.append(limits.time_limit_s or 0.0)
        return ask(problem, question, solver, limits)

    monkeypatch.setattr("p2smt.search.program_synthesis.ask", seen)
    (tmp_path / "tiny.yaml").write_text(TINY)
    requests = ("--reduce", "tp=1GiB", "--reduce", "dp=1GiB", "--reduce", "dp+tp=1GiB")
    placed = ("-t", str(tmp_path / "tiny.yaml"), "--axes", "dp=2,tp=4", "--placement")
    options = (*placed, "[[1,2],[2,2]]", *requests, "--length", "2", "--time-limit", "100")
    assert cli("programs", *options).code == 0
    assert len(left) == 3
    assert left[0] > left[1] > left[2]


@pytest.mark.parametrize("top", [(), ("--top", "3")])
def test_no_program_in_time_is_not_none_at_all(top: tuple[str, ...]) -> None:
    out = cli("programs", "--factors", "2,2", "--time-limit", "0", *top).out
    assert out == "truncated: none found in time, of up to 5 instructions\n"
