"""The loop of the joint search: what it tells while it runs, and how it ends."""

from __future__ import annotations

import pytest

from p2smt.cost.scene import Scene
from p2smt.errors import OutOfTimeError
from p2smt.parallelism.request import Request
from p2smt.plans.solution import RequestAnswer, Solution
from p2smt.result import SearchLimits, Status
from p2smt.search.joint import JointSearch, ProgressCallback
from p2smt.search.one_request import RequestAnswers
from tests.search.solve.test_solve import problem

QUESTION = problem("dp=1MiB*8", "tp=1MiB*9")  # what is proposed first is the best


def search(progress: ProgressCallback | None = None, top: int = 3) -> Solution:
    return JointSearch(QUESTION, SearchLimits(), progress=progress).run(top)


def test_progress_closes_the_gap_and_ends_with_the_first_rank() -> None:
    told: list[tuple[float | None, float]] = []
    found = search(lambda best_s, bound_s: told.append((best_s, bound_s)))
    assert found.best is not None
    prices = [best_s for best_s, _ in told if best_s is not None]
    bounds = [bound_s for _, bound_s in told]
    assert len(prices) == len(told) > 1
    assert prices == sorted(prices, reverse=True)
    assert bounds == sorted(bounds)
    assert prices[-1] == found.best.objective_s
    assert bounds[-1] == pytest.approx(prices[-1], rel=1e-9)
    assert bounds[0] >= found.physical_bound_s > 0
    assert len(told) < found.stats.calls, "the second and third rank are not told"


def test_an_interrupt_keeps_what_was_priced() -> None:
    def interrupt(_best_s: float | None, _bound_s: float) -> None:
        raise KeyboardInterrupt

    found = search(interrupt)
    assert (found.interrupted, found.status) == (True, Status.FEASIBLE)
    assert (found.ranking, len(found.alternatives)) == (Status.TRUNCATED, 1)
    assert found.best is not None
    assert 0 < found.physical_bound_s <= found.bound_s <= found.best.objective_s
    assert (found.stats.calls, found.stats.counters) == (1, (("programs", 2),))


@pytest.mark.parametrize(
    ("allowed", "status"), [(0, Status.FEASIBLE), (1, Status.FEASIBLE), (2, Status.OPTIMAL)]
)
@pytest.mark.parametrize("reason", [OutOfTimeError, KeyboardInterrupt])
def test_an_end_in_the_middle_of_a_request(
    monkeypatch: pytest.MonkeyPatch, allowed: int, status: Status, reason: type[BaseException]
) -> None:
    answered = RequestAnswers.of

    def until(
        self: RequestAnswers, request: Request, scene: Scene, limits: SearchLimits
    ) -> RequestAnswer | None:
        if len(self) == allowed:
            raise reason
        return answered(self, request, scene, limits)

    monkeypatch.setattr(RequestAnswers, "of", until)
    found = search()
    assert (found.status, found.ranking) == (status, Status.TRUNCATED)
    assert found.interrupted is (reason is KeyboardInterrupt)
    assert found.stats.counters == (("programs", allowed),)
    assert found.bound_s > 0


def test_requests_that_differ_in_times_share_an_answer() -> None:
    question = problem("tp=1MiB", "tp=1MiB*9")
    found = JointSearch(question, SearchLimits()).run(1)
    assert found.best is not None
    once, often = found.best.requests
    assert [once.request, often.request] == list(question.requests)
    assert (once.program, once.seconds) == (often.program, often.seconds)
    alone = JointSearch(problem("tp=1MiB"), SearchLimits()).run(1)
    assert found.stats.counters == alone.stats.counters
