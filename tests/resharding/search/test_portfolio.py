"""Which search answers, what it says of the others, and why there is no proof or no plan."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Event, Thread

import pytest

from p2smt.errors import InputError
from p2smt.report.resharding_tables import no_plan_text
from p2smt.resharding import best_path as best
from p2smt.resharding import layered_rows as rows
from p2smt.resharding import search as portfolio
from p2smt.resharding import search as solve
from p2smt.resharding.cuts import PathResult
from p2smt.resharding.reachability import RedistributionAnswer, RedistributionQuestion
from p2smt.resharding.search import find_redistribution, no_plan
from p2smt.resharding.types import Uneven
from p2smt.result import OUT_OF_TIME, SearchLimits, Status
from tests.resharding.search.questions import array, cluster

SMALL = cluster(2, 4)


def question(
    source: str = "S(dp),S(tp)",
    *,
    cap: int | None = None,
    steps: int | None = None,
    limits: SearchLimits | None = None,
    uneven: Uneven = Uneven.REFUSE,
) -> RedistributionQuestion:
    shape = (16, 16) if uneven is Uneven.REFUSE else (13, 9)
    kinds = [array("dp=2,tp=4", shape, text, uneven=uneven) for text in (source, "R,S(tp)")]
    return RedistributionQuestion(
        kinds[0], kinds[1], SMALL, cap, max_steps=steps, limits=limits or SearchLimits()
    )


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "_SETTLED", OrderedDict())


@pytest.fixture
def no_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "EXACT_S", 0.0)


def no_coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "coarse_path", lambda *_: None)


@pytest.mark.usefixtures("no_exact")
@pytest.mark.parametrize("steps", [None, 3])
def test_a_plan_in_hand_outlives_too_many_groups(
    monkeypatch: pytest.MonkeyPatch, steps: int | None
) -> None:
    monkeypatch.setattr(rows, "MAX_ROWS", 0)
    plan = find_redistribution(question(steps=steps)).plan
    assert plan is not None
    assert (plan.status, plan.max_steps) == (Status.FEASIBLE, steps)
    assert "kinds of groups, too many" in plan.stats.reason


@pytest.mark.usefixtures("no_exact")
def test_too_many_groups_are_the_reason_of_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_ROWS", 0)
    no_coarse(monkeypatch)
    says_why(find_redistribution(question()), "kinds of groups, too many for the solver")


def says_why(answer: RedistributionAnswer, reason: str) -> None:
    assert (answer.status, answer.plan) == (Status.UNKNOWN, None)
    assert reason in no_plan_text(answer)
    assert reason in str(no_plan(answer))


def test_too_many_types_are_the_reason_of_no_plan() -> None:
    axes = "abcdefghi"
    mesh = ",".join(f"{axis}=2" for axis in axes)
    layouts = (f"S({','.join(axes)}),R,R", f"R,S({','.join(reversed(axes))}),R")
    kinds = [array(mesh, (515, 517, 519), text, uneven=Uneven.NESTED) for text in layouts]
    answer = find_redistribution(RedistributionQuestion(kinds[0], kinds[1], cluster(64, 8)))
    says_why(answer, best.TOO_MANY)
    assert "time" not in str(no_plan(answer))


def test_the_time_limit_is_the_reason_of_no_plan() -> None:
    answer = find_redistribution(question(limits=SearchLimits(time_limit_s=0.0)))
    says_why(answer, OUT_OF_TIME)
    assert str(no_plan(answer)).endswith("; give more time")


@pytest.mark.usefixtures("no_exact")
def test_no_plan_of_so_few_steps_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "MANY_LAYERS", 1)
    monkeypatch.setattr(portfolio, "MOST_LAYERS", 2)
    no_coarse(monkeypatch)
    answer = find_redistribution(question("S(dp),S(tp)", cap=256))
    says_why(answer, "none of at most 2 steps")
    assert answer.stats.calls >= 3
    with pytest.raises(InputError, match="longer ones were not looked for"):
        raise no_plan(answer)


@pytest.mark.parametrize("uneven", [Uneven.PADDED, Uneven.NESTED])
@pytest.mark.parametrize("limit_s", [None, 6000.0])
def test_the_exact_search_leaves_time_where_another_follows(
    monkeypatch: pytest.MonkeyPatch, uneven: Uneven, limit_s: float | None
) -> None:
    given: list[float | None] = []

    def searched(*asked: object, max_steps: int | None) -> PathResult:
        assert isinstance(asked[3], SearchLimits)
        given.append(asked[3].time_limit_s)
        return best.best_path(*asked, max_steps=max_steps)  # type: ignore[arg-type]

    monkeypatch.setattr(portfolio, "best_path", searched)
    find_redistribution(question(uneven=uneven, limits=SearchLimits(time_limit_s=limit_s)))
    if uneven is Uneven.PADDED:
        assert given == [portfolio.EXACT_S]
    elif limit_s is None:
        assert given == [None]
    else:
        assert given == [pytest.approx(limit_s, rel=0.1)]


@pytest.mark.usefixtures("no_exact")
@pytest.mark.parametrize("coarse", [True, False])
def test_a_proof_by_layers_is_theirs(monkeypatch: pytest.MonkeyPatch, coarse: bool) -> None:
    if not coarse:
        no_coarse(monkeypatch)
    plan = find_redistribution(question()).plan
    assert plan is not None
    assert (plan.status, plan.stats.solver, plan.stats.reason) == (Status.OPTIMAL, "cpsat", "")
    counters = dict(plan.stats.counters)
    assert (counters["closed"] > 0) == coarse
    assert "exact_rows" in counters
    assert plan.stats.calls >= (3 if coarse else 2)


class _Slow(OrderedDict[RedistributionQuestion, RedistributionAnswer]):
    """A dictionary in which somebody looks, and takes long to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = Event()

    def get(self, key: object, default: object = None) -> RedistributionAnswer | None:  # type: ignore[override]
        found = super().get(key, default)  # type: ignore[call-overload]
        if found is not None:
            self.looked.set()
            time.sleep(0.1)
        return found  # type: ignore[no-any-return]


def test_an_answer_that_is_read_is_not_dropped_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, asked = _Slow(), question()
    monkeypatch.setattr(solve, "_SETTLED", kept)
    monkeypatch.setattr(solve, "_MOST_KEPT", 1)
    first = find_redistribution(asked)
    monkeypatch.setattr(solve, "_find", lambda _: first)
    other = Thread(target=lambda: kept.looked.wait(600) and find_redistribution(question(steps=3)))
    other.start()
    assert find_redistribution(asked) is first
    other.join()
    assert asked not in kept
