"""What the answer gains over the default layout, and whether who measures would find it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import p2smt
from p2smt.cost.library.accuracy import Accuracy, ErrorClass
from p2smt.parallelism.side_constraints import parse_rule
from p2smt.plans.solution import Gain, Solution
from p2smt.report.solution_data import solution_data
from tests.search.test_solve import problem
from tests.search.test_without_proof import text_of

SENTENCE = "no gain you would measure"


def solved(monkeypatch: pytest.MonkeyPatch, *errors: ErrorClass, heavy: int = 9) -> Solution:
    """The heavier dp, which is named first: the default layout has it across the nodes."""
    names: list[str] = []

    def committed(library: str) -> Accuracy | None:
        names.append(library)
        return Accuracy("made-1", errors) if errors else None

    monkeypatch.setattr("p2smt.search.rank_orders.accuracy_of", committed)
    asked = problem(f"dp=1MiB*{heavy}", "tp=1MiB")
    found = p2smt.solve(asked)
    assert names == [asked.topology.library]
    return found


def gain_of(solution: Solution) -> Gain:
    assert solution.gain is not None
    return solution.gain


def test_the_gain_is_the_default_layout_over_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    found = solved(monkeypatch)
    assert found.best is not None
    assert found.default is not None
    over = found.default.objective_s / found.best.objective_s - 1
    assert gain_of(found) == Gain(over)
    assert over > 1
    data = solution_data(found)
    assert (data["gain"], data["gain_measurable"], data["accuracy"]) == (over, None, None)
    assert SENTENCE not in text_of(found)


@pytest.mark.parametrize(("error", "measurable"), [(0.99, True), (1.01, False)])
def test_a_gain_below_the_accuracy_is_none(
    monkeypatch: pytest.MonkeyPatch, error: float, measurable: bool
) -> None:
    over = gain_of(solved(monkeypatch)).over_default
    found = solved(monkeypatch, ErrorClass(error * over))
    assert gain_of(found).measurable is measurable
    assert gain_of(found).error == pytest.approx(error * over)
    assert (SENTENCE in text_of(found)) is not measurable
    assert ("made-1" in text_of(found)) is not measurable
    assert solution_data(found)["gain_measurable"] is measurable


def test_the_class_of_the_payload_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    small_alone = ErrorClass(0.1, 2**20 - 1)
    assert gain_of(solved(monkeypatch, small_alone)).measurable is None
    found = solved(monkeypatch, small_alone, ErrorClass(9.0, 2**20))
    assert gain_of(found).error == pytest.approx(9.0)


def test_the_default_layout_itself_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    accuracy = Accuracy("made-1", (ErrorClass(0.05),))
    monkeypatch.setattr("p2smt.search.rank_orders.accuracy_of", lambda _: accuracy)
    found = p2smt.solve(problem("tp=1MiB", max_length=1))
    assert gain_of(found).over_default == pytest.approx(0.0, abs=1e-9)
    assert gain_of(found).measurable is False
    assert f"{SENTENCE}: 0 % over the default layout" in text_of(found)


def test_of_the_largest_request_only_its_own_accuracy_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accuracy = Accuracy("made-1", (ErrorClass(0.25, 2**20), ErrorClass(0.5)))
    monkeypatch.setattr("p2smt.search.rank_orders.accuracy_of", lambda _: accuracy)
    asked = problem("dp=1MiB", "tp=1GiB", objective="max")
    assert gain_of(p2smt.solve(asked)).error == 0.5
    both = gain_of(p2smt.solve(replace(asked, objective="sum"))).error
    assert both is not None
    assert 0.25 < both < 0.5


def test_without_an_answer_nothing_is_gained() -> None:
    names = (["dp", "tp"], ["node", "gpu"])
    both = tuple(parse_rule(f"{name} within node", True, *names) for name in names[0])
    found = p2smt.solve(problem("dp=1MiB", rules=both))
    assert found.gain is None
    assert solution_data(found)["gain"] is None
