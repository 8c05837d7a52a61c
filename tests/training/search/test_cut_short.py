"""A search that is broken off anywhere: it proves nothing that is not so."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from types import FrameType
from typing import Any

import pytest

from p2smt.result import SearchLimits, Status
from p2smt.training.search.plan import plan
from p2smt.training.search.plan_answer import PlanAnswer
from p2smt.training.search.program_timing import ProgramCache
from p2smt.training.search.question import PlanQuestion, Prices, SpaceLimits
from p2smt.training.strategy import Batch, Recompute, Strategy
from tests.tiers import but_the_first
from tests.training.search.test_plan import MODEL, cluster
from tests.training.search.test_plan_answers import EFFICIENCY

SLOW_LINKS = PlanQuestion(
    MODEL,
    Batch(16, 64),
    cluster((2, 2, 2), (1e7, 1e10, 1e10)),
    EFFICIENCY,
    SpaceLimits(2, 1, 1, 1, 1, (Recompute.NONE,), (0, 1, 3)),
    memory_bytes=10**8,
    within=0.3,
)
"""With programs another strategy is the best, and faster."""
BOTH = but_the_first(Prices.PROGRAMS, Prices.COLLECTIVES)


@dataclass
class CountedWatch:
    """A watch whose limit comes at a look at it, or where it is interrupted then."""

    looks: int
    interrupts: bool = False

    def expired(self) -> bool:
        self.looks -= 1
        if self.looks < 0 and self.interrupts:
            raise KeyboardInterrupt
        return self.looks < 0

    def remaining_s(self) -> float | None:
        return 0.0 if self.expired() else None

    def left(self) -> SearchLimits:
        return SearchLimits()

    def elapsed_s(self) -> float:
        return 0.0

    def tell(self, *_: object, **__: object) -> None:
        """Nobody looks on."""


@dataclass(frozen=True)
class Watches:
    """In the place of the class of watches: each search starts with this one."""

    watch: CountedWatch

    def start(self, _: SearchLimits) -> CountedWatch:
        return self.watch


@pytest.fixture(autouse=True, scope="module")
def sought_once() -> Iterator[None]:
    """The searches share what solvers say of a request, which takes most of their time."""
    shared = ProgramCache.of(SLOW_LINKS.topology).answers
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgramCache, "of", staticmethod(lambda _: ProgramCache(shared)))
        yield


@lru_cache
def whole(prices: Prices) -> tuple[float, tuple[Strategy, ...]]:
    """The least seconds, and the near-optimal strategies, of a search that nothing broke off."""
    found = plan(replace(SLOW_LINKS, prices=prices))
    assert found.best is not None
    assert found.near is not None
    assert found.status is Status.OPTIMAL
    return found.best.iteration_s, tuple(one.strategy for one in found.near.members)


def is_sound(found: PlanAnswer) -> None:
    """What it claims is so; what it found can be reached."""
    least_s, near = whole(found.question.prices)
    assert found.bound_s <= least_s * (1 + 1e-9)
    assert found.status in (Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN)
    if found.best is None:
        assert found.status is Status.UNKNOWN
        return
    assert found.best.iteration_s >= least_s * (1 - 1e-9)
    if found.status is Status.OPTIMAL:
        assert found.best.iteration_s <= least_s * (1 + 1e-9)
    assert found.near is not None
    if found.near.status is Status.COMPLETE:
        assert {one.strategy for one in found.near.members} == set(near)
    with_what = "single collective" if found.question.prices is Prices.COLLECTIVES else "program"
    if found.status is not Status.UNKNOWN:
        assert with_what in found.proof()


def test_programs_matter_here() -> None:
    (fast_s, near), (slow_s, others) = whole(Prices.PROGRAMS), whole(Prices.COLLECTIVES)
    assert fast_s < 0.9 * slow_s
    assert near[0] != others[0]


@pytest.mark.exhaustive
@pytest.mark.parametrize("interrupts", but_the_first(False, True))
@pytest.mark.parametrize("prices", BOTH)
def test_a_limit_at_any_look_at_the_watch(
    prices: Prices, *, interrupts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, statuses = replace(SLOW_LINKS, prices=prices), set()
    whole(prices)  # while watches are as ever
    for looks in range(10_000):
        watch = CountedWatch(looks, interrupts)
        monkeypatch.setattr("p2smt.training.search.plan.StopWatch", Watches(watch))
        found = plan(question)
        is_sound(found)
        statuses.add(found.status)
        if watch.looks >= 0:
            break
        assert found.interrupted is interrupts
    assert found.counts.closed
    assert statuses >= {Status.UNKNOWN, Status.OPTIMAL}
    assert Status.FEASIBLE in statuses or prices is Prices.COLLECTIVES


@contextmanager
def interrupted_at(line: int) -> Iterator[list[int]]:
    """Ctrl-C at a line of the search, counted from its start; what is yielded counts them."""
    count = [0]

    def local(_: FrameType, event: str, __: Any) -> Any:
        if event == "line":
            count[0] += 1
            if count[0] == line:
                raise KeyboardInterrupt
        return local

    def each(frame: FrameType, _: str, __: Any) -> Callable[..., Any] | None:
        inside = "/training/search/" in frame.f_code.co_filename
        named = frame.f_code.co_filename.endswith(
            ("plan.py", "branch.py", "bounds_table.py", "prices.py", "programs.py")
        )
        return local if inside and named and "tests" not in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(each)
    try:
        yield count
    finally:
        sys.settrace(before)


@pytest.mark.exhaustive
@pytest.mark.parametrize("prices", [Prices.PROGRAMS, Prices.COLLECTIVES])
def test_an_interrupt_at_any_line_of_the_search(prices: Prices) -> None:
    """Outside of the search proper it goes on to the caller."""
    question = replace(SLOW_LINKS, prices=prices)
    with interrupted_at(0) as lines:
        plan(question)
    answered = 0
    for line in range(1, lines[0] + 1, max(1, lines[0] // 150)):
        try:
            with interrupted_at(line):
                found = plan(question)
        except KeyboardInterrupt:
            continue
        is_sound(found)
        answered += found.interrupted
    assert answered > 20
