"""A search in parts that ends before any part is closed answers all the same: feasible, bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.errors import OutOfTimeError
from p2smt.parallel_search import coordinate
from p2smt.parallel_search.parallel_options import InProcess, Spread
from p2smt.result import Status
from p2smt.training.search.branch import CollectiveTiming
from p2smt.training.search.plan import plan
from p2smt.training.search.plan_answer import PlanAnswer
from p2smt.training.search.question import PlanQuestion, Prices
from p2smt.training.search.subproblems import PlanSpace
from tests.training.search.test_cut_short import SLOW_LINKS, whole

QUESTIONS = [replace(SLOW_LINKS, prices=prices) for prices in Prices]
ROOTS = PlanSpace.roots


def interrupt(*_: object, **__: object) -> object:
    raise KeyboardInterrupt


def never(*_: object) -> bool:
    return False


# What ends the search before its first part is closed: a class, its function, another one.
CUTS = {
    "no time for a part": (coordinate._Run, "goes_on", never, False),
    "interrupted in a part": (PlanSpace, "close", interrupt, True),
    "interrupted as parts are made": (PlanSpace, "roots", interrupt, True),
    "interrupted as workers start": (InProcess, "__enter__", interrupt, True),
}


def assert_feasible(found: PlanAnswer) -> None:
    """An answer that can be reached, with a bound that holds."""
    least_s, _ = whole(found.question.prices)
    assert found.status is Status.FEASIBLE
    assert found.best is not None
    assert 0 < found.bound_s <= least_s * (1 + 1e-9)
    assert found.best.iteration_s >= least_s * (1 - 1e-9)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.prices.value)
def test_it_has_an_answer(
    question: PlanQuestion, cut: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole(question.prices)  # while everything is as ever
    owner, name, other, interrupts = CUTS[cut]
    monkeypatch.setattr(owner, name, other)
    found = plan(question, spread=Spread(engine="in-process"))
    assert_feasible(found)
    assert found.interrupted is interrupts


def test_a_faster_one_of_the_first_stays_beside_what_a_part_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cut short after its first part, the answer is no worse than before any part."""
    question = replace(SLOW_LINKS, prices=Prices.COLLECTIVES)
    whole(question.prices)
    with monkeypatch.context() as patch:
        patch.setattr(coordinate._Run, "goes_on", never)
        before = plan(question, spread=Spread())
    assert before.best is not None
    closed, close = list[object](), PlanSpace.close

    def once(*given: object) -> object:
        if closed:
            raise KeyboardInterrupt
        closed.append(given)
        return close(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(PlanSpace, "close", once)
    monkeypatch.setattr(PlanSpace, "roots", lambda self: tuple(reversed(ROOTS(self))))
    monkeypatch.setattr(PlanSpace, "bound", lambda *_: 0)
    found = plan(question, spread=Spread())
    assert closed
    assert_feasible(found)
    assert found.best is not None
    assert found.best.iteration_s <= before.best.iteration_s * (1 + 1e-9)


@pytest.mark.parametrize("error", [OutOfTimeError, KeyboardInterrupt])
def test_what_was_timed_until_then_is_kept(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit comes after the first strategies were timed, and before the space is made."""
    question = replace(SLOW_LINKS, prices=Prices.COLLECTIVES)
    whole(question.prices)
    settle = CollectiveTiming.settle

    def then_ends(self: CollectiveTiming, *given: object) -> None:
        settle(self, *given)  # type: ignore[arg-type]
        raise error

    monkeypatch.setattr(CollectiveTiming, "settle", then_ends)
    found = plan(question, spread=Spread())
    assert_feasible(found)
    assert found.interrupted is (error is KeyboardInterrupt)
