"""Groups and classes in turn: what is tried in which order, and what an answer rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pytest

from p2smt import result
from p2smt.errors import TooLarge
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.schedule import ScheduleClass, ScheduleSymmetry, SumSchedule
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch
from p2smt.synthesis.bounds import distance_bound
from p2smt.synthesis.setting import Answer, GroupChoice, ScheduleSize, Synthesis, SynthesisSetting
from p2smt.synthesis.symmetry_search import VAIN_PART, ScheduleSearch, Trial, with_last
from p2smt.synthesis.synthesize import answered
from tests.synthesis.late import Clock

EMPTY = SumSchedule((), ())
NO, OPEN, YES = Status.INFEASIBLE, Status.UNKNOWN, Status.FEASIBLE
SIZE = ScheduleSize(2, 2, 1)


def groups(*orders: int) -> list[GroupChoice]:
    """Groups of these orders, told apart by a symmetry that nobody looks at."""
    return [
        GroupChoice(order, () if order == 1 else (ScheduleSymmetry((n,), (), ()),))
        for n, order in enumerate(orders)
    ]


class Fake:
    """Answers by order of the group and class; keeps what it was asked, with which effort.

    ``variables``: of each model.
    """

    def __init__(
        self,
        answers: Mapping[tuple[int, ScheduleClass | None], Sequence[Status]],
        variables: int = 0,
    ) -> None:
        self.stats = SolveStats("none", counters=(("variables", variables),))
        self.answers = {key: list(each) for key, each in answers.items()}
        self.asked: list[tuple[int, ScheduleClass | None, int | None]] = []

    def __call__(self, trial: Trial, limits: SearchLimits) -> Result[SumSchedule]:
        key = (trial.rung.order, trial.family)
        self.asked.append((*key, limits.effort))
        status = self.answers[key].pop(0)
        return Result(status, EMPTY if status is YES else None, stats=self.stats)


def climbed(fake: Fake, trials: Sequence[Trial]) -> ScheduleSearch:
    climb = ScheduleSearch(iter(trials), fake, 1000)
    climb.finish(StopWatch.start(SearchLimits()))
    return climb


def spent_by(climb: ScheduleSearch, most: int) -> bool:
    return climb.spent >= most


def answer(climb: ScheduleSearch, collective: str) -> Synthesis:
    setting = SynthesisSetting(load_fabric("ring:3"), collective)
    bound = distance_bound(setting.fabric, setting.collective)
    return answered(setting, SIZE, bound, climb, StopWatch.start(SearchLimits()))


def words(climb: ScheduleSearch, collective: str = "allgather") -> tuple[Answer, str]:
    found = answer(climb, collective)
    return found.status, found.reason


def test_larger_groups_first_and_open_ones_again_with_more() -> None:
    fake = Fake({(4, None): [OPEN, OPEN, YES], (2, None): [NO], (1, None): [OPEN, OPEN]})
    climb = climbed(fake, [Trial(rung, None) for rung in groups(4, 2, 1)])
    assert fake.asked == [
        *((4, None, 1000), (2, None, 1000), (1, None, 1000)),
        *((4, None, 4000), (1, None, 4000), (4, None, 16000)),
    ]
    assert climb.sums is EMPTY
    assert climb.attempts[-1].order == 4
    assert climb.spent == 2 * 5000 + 1000 // VAIN_PART


@pytest.mark.parametrize("family", [ScheduleClass.ACCUMULATORS, ScheduleClass.PARTIAL_SUMS])
@pytest.mark.parametrize(("variables", "together"), [(2007, 0), (2008, 1), (8007, 1), (8008, 2)])
def test_a_large_model_of_the_widest_class_lets_others_wait_for_longer_slices(
    family: ScheduleClass, variables: int, together: int
) -> None:
    """Eight variables are stated in a unit of effort; slices are 250, 1000 and 4000."""
    fake = Fake({(order, family): [OPEN] * 3 for order in (4, 2)}, variables)
    climb = ScheduleSearch([Trial(rung, family) for rung in groups(4, 2)], fake, 1000)
    for _ in range(3):
        climb.turn(StopWatch.start(SearchLimits()))
    together = together if family is ScheduleClass.PARTIAL_SUMS else 0
    slices = enumerate((250, 1000, 4000))
    asked = [(n, effort) for at, effort in slices for n in ((4, 2) if at >= together else (4,))]
    assert [(order, effort) for order, _, effort in fake.asked] == asked
    assert climb.spent == sum(effort + variables // 8 for _, effort in asked)


def test_groups_that_wait_are_open_until_they_had_a_turn() -> None:
    """The last one has all the time, however large its model."""
    family = ScheduleClass.PARTIAL_SUMS
    fake = Fake({(4, family): [NO], (2, family): [NO], (1, family): [NO]}, 10_000)
    climb = ScheduleSearch([Trial(rung, family) for rung in groups(4, 2, 1)], fake, 1000)
    climb.turn(StopWatch.start(SearchLimits()))
    assert [order for order, *_ in fake.asked] == [4]
    assert (climb.over, climb.groups_refuted) == (False, False)
    assert words(climb, "allreduce")[0] is Answer.UNKNOWN
    climb.finish(StopWatch.start(SearchLimits()))
    assert [(order, effort) for order, _, effort in fake.asked] == [(4, 250), (2, 1000), (1, None)]
    assert climb.refuted


def test_without_time_no_group_is_made_and_what_was_left_comes_later() -> None:
    made: list[int] = []

    def trials() -> Iterator[Trial]:
        for rung in groups(8, 4, 2, 1):
            made.append(rung.order)
            yield Trial(rung, None)

    fake = Fake({(8, None): [OPEN], (4, None): [NO], (2, None): [NO], (1, None): [NO]})
    climb = ScheduleSearch(trials(), fake, 1000)
    climb.turn(StopWatch.start(SearchLimits(0.0)))
    assert (made, fake.asked, climb.over) == ([8, 4], [], False)
    climb.turn(StopWatch.start(SearchLimits()))
    assert [order for order, *_ in fake.asked] == [8, 4, 2, 1]


def test_where_a_turn_ends_early_the_others_go_on_with_their_own_slices() -> None:
    """Two turns end when enough was spent: what they did not come to has its first slice later."""
    fake = Fake({(order, None): [OPEN] * 3 for order in (8, 4, 2)})
    climb = ScheduleSearch([Trial(rung, None) for rung in groups(8, 4, 2)], fake, 1000)
    for spent in (1000, 6000, 27_000):
        climb.turn(StopWatch.start(SearchLimits()), partial(spent_by, climb, spent))
        assert (climb.spent, climb.over) == (spent, False)
    assert [(order, effort) for order, _, effort in fake.asked] == [
        *((8, 1000), (4, 1000), (8, 4000)),
        *((2, 1000), (4, 4000), (8, 16_000)),
    ]


@pytest.mark.parametrize("first", [1000, 3000])
def test_no_trial_waits_for_those_before_it_without_end(first: int) -> None:
    """In passes that give a size three times what it spent before, as frontiers do."""
    orders = [2**n for n in range(7, -1, -1)]
    fake = Fake({(order, None): [OPEN] * 9 for order in orders})
    climb = ScheduleSearch([Trial(rung, None) for rung in groups(*orders)], fake, 1000)
    for _ in range(4):
        most = climb.spent + max(first, 3 * climb.spent)
        climb.turn(StopWatch.start(SearchLimits()), partial(spent_by, climb, most))
    assert {order for order, *_ in fake.asked} == set(orders)


def test_the_last_one_that_is_open_has_all_the_time() -> None:
    fake = Fake({(2, None): [NO], (1, None): [NO]})
    climb = climbed(fake, [Trial(rung, None) for rung in groups(2, 1)])
    assert fake.asked[-1] == (1, None, None)
    assert words(climb) == (Answer.NO_SCHEDULE, "no schedule (complete search)")


def test_no_class_but_the_widest_refutes_an_all_reduce() -> None:
    trees, sums = ScheduleClass.TREES, ScheduleClass.PARTIAL_SUMS
    (one,) = groups(1)
    fake = Fake({(1, trees): [NO], (1, sums): [NO]})
    climb = ScheduleSearch(iter([Trial(one, trees), Trial(one, sums, 1)]), fake, 1000)
    watch = StopWatch.start(SearchLimits())
    climb.turn(watch)
    assert not climb.refuted
    assert words(climb, "allreduce")[0] is Answer.UNKNOWN
    climb.finish(watch)
    reason = "no schedule in class G with 1 message (complete search)"
    assert words(climb, "allreduce") == (Answer.NO_SCHEDULE, reason)


def test_none_with_symmetries_is_not_none() -> None:
    fake = Fake({(2, None): [NO], (1, None): [OPEN]})
    climb = ScheduleSearch([Trial(rung, None) for rung in groups(2, 1)], fake, 1000)
    climb.turn(StopWatch.start(SearchLimits()))
    assert words(climb) == (Answer.NO_SYMMETRIC, "no symmetric schedule")


def test_one_open_group_leaves_it_unknown() -> None:
    fake = Fake({(4, None): [OPEN], (2, None): [NO], (1, None): [OPEN]})
    climb = ScheduleSearch([Trial(rung, None) for rung in groups(4, 2, 1)], fake, 1000)
    climb.turn(StopWatch.start(SearchLimits()))
    assert words(climb) == (Answer.UNKNOWN, "unknown")


@pytest.mark.parametrize(("at", "known"), [(4, [8]), (1, [8, 4, 2])])
def test_an_interrupt_keeps_what_is_known(at: int, known: list[int]) -> None:
    def search(trial: Trial, _: SearchLimits) -> Result[SumSchedule]:
        if trial.rung.order == at:
            raise KeyboardInterrupt
        return Result(NO)

    climb = ScheduleSearch(iter([Trial(rung, None) for rung in groups(8, 4, 2, 1)]), search, 1000)
    climb.finish(StopWatch.start(SearchLimits()))
    assert climb.interrupted
    assert [attempt.order for attempt in climb.attempts] == known
    assert words(climb)[0] is (Answer.UNKNOWN if at == 4 else Answer.NO_SYMMETRIC)


def test_groups_that_time_left_out_leave_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(f"{result.__name__}.time", clock)
    watch = StopWatch.start(SearchLimits(1.0))

    def search(_: Trial, __: SearchLimits) -> Result[SumSchedule]:
        clock.all_of(watch)
        return Result(NO)

    climb = ScheduleSearch(iter([Trial(rung, None) for rung in groups(4, 2, 1)]), search, 1000)
    climb.finish(watch)
    assert [attempt.order for attempt in climb.attempts] == [4]
    assert words(climb) == (Answer.UNKNOWN, "unknown")


def test_what_is_too_large_is_tried_once_and_says_so() -> None:
    def search(trial: Trial, _: SearchLimits) -> Result[SumSchedule]:
        raise TooLarge(f"order {trial.rung.order}", "is more than a million variables")

    climb = ScheduleSearch(iter([Trial(rung, None) for rung in groups(2, 1)]), search, 1000)
    watch = StopWatch.start(SearchLimits())
    climb.finish(watch)
    found = answer(climb, "allgather")
    assert found.status is Answer.UNKNOWN
    assert found.detail == "order 1: is more than a million variables"


def test_nothing_begins_after_the_time() -> None:
    fake = Fake({})
    climb = ScheduleSearch([Trial(rung, None) for rung in groups(2, 1)], fake, 1000)
    climb.finish(StopWatch.start(SearchLimits(0.0)))
    assert fake.asked == []
    assert words(climb) == (Answer.UNKNOWN, "unknown")


@pytest.mark.parametrize("count", range(4))
def test_the_last_is_known(count: int) -> None:
    every = [Trial(rung, None) for rung in groups(*range(1, count + 1))]
    assert list(with_last(iter(every))) == [(one, one is every[-1]) for one in every]
