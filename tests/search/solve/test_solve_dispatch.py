"""Placements of a dispatch, alone and beside others, against brute force over all matrices."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.collectives.dispatch import Dispatch
from p2smt.errors import InputError
from p2smt.parallelism.request import Problem, Request
from p2smt.result import Status
from p2smt.search.joint import Estimates
from tests.search.solve.test_solve import agrees, brute_force, problems
from tests.tiers import examples_of


@st.composite
def with_dispatch(draw: st.DrawFn) -> Problem:
    """A small problem, some of whose requests are dispatches over one axis or two."""
    found = draw(problems(12))
    requests = list(found.requests)
    for _ in range(draw(st.integers(1, 2))):
        axes = draw(st.sets(st.sampled_from(found.axes), min_size=1, max_size=2))
        ranks = math.prod(axis.size for axis in axes)
        experts, each = 4 * ranks, draw(st.integers(1, 4))
        imbalance = draw(st.sampled_from([1.0, 1.5]))
        kind = Dispatch(experts, each, imbalance=imbalance)
        names = tuple(sorted(axis.name for axis in axes))
        requests.append(Request(kind, names, draw(st.sampled_from([1000, 10**6])), 2))
    return replace(found, requests=tuple(requests[-3:]))


@pytest.mark.parametrize("solver", ["cpsat", "z3"])
@settings(max_examples=examples_of(60))
@given(asked=with_dispatch())
def test_the_answer_is_that_of_brute_force(solver: str, asked: Problem) -> None:
    agrees(p2smt.solve(asked, solver=solver), asked)


def asked(*texts: str, axes: str = "dp=8,ep=8", preset: str = "dgx-h100:8") -> Problem:
    topology = p2smt.load_topology(preset)
    return Problem(topology, p2smt.parse_axes(axes), tuple(map(p2smt.dispatch, texts)))


def test_it_is_no_all_to_all_of_fewer_bytes() -> None:
    """Of two placements an all-to-all and a dispatch prefer different ones, whatever the bytes.

    Two axes compete for the nodes' inside: an all-to-all loads it with r (p - q) / p whatever r,
    a dispatch crosses nodes with at most one copy for each.
    """
    topology = p2smt.load_topology("dgx-h100:8")
    prices = []
    for rows in ([1, 8], [2, 4], [4, 2], [8, 1]):
        placement = p2smt.Placement((tuple(8 // n for n in rows), tuple(rows)))
        for request in (
            p2smt.dispatch("ep=64MiB,experts=64,active=8"),
            p2smt.all_to_all("ep=64MiB"),
        ):
            problem = Problem(topology, p2smt.parse_axes("dp=8,ep=8"), (request,))
            prices.append(p2smt.cost_of(problem, placement).objective_s)
    ratios = [ours / theirs for ours, theirs in zip(prices[::2], prices[1::2], strict=True)]
    assert max(ratios) > 2 * min(ratios)


def test_dispatches_of_as_many_bytes_are_told_apart() -> None:
    """By what is kept of requests met before, in answers and in estimates."""
    texts = [f"ep=7MiB,experts=256,active={active}" for active in (1, 8)]
    found = p2smt.solve(asked(*texts), top=1)
    assert found.best is not None
    one, eight = (answer.seconds for answer in found.best.requests)
    assert one < eight
    assert found.best.matrix is not None
    estimates = Estimates(found.problem)
    assert estimates.of(found.best.matrix).single_s == pytest.approx(one + eight, rel=1e-12)


def test_the_best_keeps_experts_inside_a_node() -> None:
    found = p2smt.solve(asked("ep=7MiB,experts=256,active=8"))
    assert found.status is Status.OPTIMAL
    assert found.best is not None
    assert found.best.matrix == ((8, 1), (1, 8))
    assert found.best.objective_s == brute_force(found.problem)[0][0]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("ep=7MiB", "lacks active and experts"),
        ("ep=7MiB,experts=256", "lacks active"),
        ("ep=7MiB,experts=256,active=8,groups=8", "lacks top_groups"),
        ("ep=7MiB,experts=256,active=8,top_groups=8", "lacks groups"),
        ("ep=7MiB,experts=256,active=8,active=8", "names a number twice"),
        ("ep=7MiB,experts=256,active=8,tokens=5", "'tokens' in .* must be one of"),
        ("ep=7MiB,experts=256,active=eight", "is not a whole number"),
        ("ep=7MiB,experts=256,active=8,imbalance=-1", "is no number"),
        ("ep=7MiB,experts=256,active=8,imbalance=0.5", "imbalance 0.5: must be 1"),
        ("ep=7MiB,experts=250,active=8", "250 experts over 8 ranks: do not divide evenly"),
        ("ep=7,experts=256,active=8", "size"),
        ("tp=7MiB,experts=256,active=8", "'tp' in request"),
    ],
)
def test_bad_text(text: str, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        asked(text)


def test_text_and_back() -> None:
    text = "ep=7MiB*4,experts=256,active=8,groups=8,top_groups=4,imbalance=1.25"
    (request,) = asked(text).requests
    assert request.kind == Dispatch(256, 8, 8, 4, 1.25)
    assert (request.payload_bytes, request.times) == (7 * 2**20, 4)
    said = "dispatch ep 7 MiB to 8 of 256 experts, 4 of 8 groups, imbalance 1.25 x 4"
    assert str(request) == said


def test_an_explanation_says_why_there_is_none() -> None:
    found = p2smt.solve(asked("ep=7MiB,experts=256,active=8"), explain=True)
    assert found.explanation is not None
    assert "dispatch" in found.explanation.why
