"""The coordinator against engines that do their worst, and after any stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import EncodingBug, InputError
from p2smt.parallel_search.coordinate import search
from p2smt.parallel_search.engine import Ended, SearchProgress, WorkerDied
from p2smt.parallel_search.parallel_options import InProcess
from p2smt.parallel_search.state import Frontier
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    SearchKind,
    Signals,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from p2smt.result import OUT_OF_TIME, SearchLimits, Status, StopWatch
from tests.parallel_search.chaos import Chaos, Notes
from tests.parallel_search.test_outcomes import assert_right, toys
from tests.parallel_search.toy import Toy

TOY = Toy((3, 2, 5, 1), depth=2)
ZERO = Subproblem(("0", "0"))


@given(toys, st.integers(1, 4), st.integers(1, 4), st.integers(0, 99), st.booleans())
def test_no_engine_changes_the_outcome(
    toy: Toy, top: int, workers: int, seed: int, budget: bool
) -> None:
    """Answers that are late, double or out of order; workers that die; cutoffs that are stale."""
    budget_s = 1.0 if budget else None
    outcome = search(toy, Chaos(toy, workers, seed), top=top, budget_s=budget_s)
    assert_right(toy, top, outcome)


@given(toys, st.integers(1, 4), st.lists(st.integers(0, 6), max_size=6), st.integers(0, 99))
def test_a_search_goes_on_from_any_stop(toy: Toy, top: int, stops: list[int], seed: int) -> None:
    """What was recorded is not done again; each run has another engine."""
    notes, closed = Notes(), 0
    for number, lines in enumerate(stops):
        outcome = search(
            toy, Chaos(toy, 2, seed + number), top=top, budget_s=1.0, journal=notes.again(lines)
        )
        if not outcome.interrupted:
            assert_right(toy, top, outcome)
        assert len(notes.closures) >= closed
        closed = len(notes.closures)
    assert_right(toy, top, search(toy, InProcess(toy), top=top, journal=notes.again(None)))
    assert len({c.cube for c in notes.closures}) == len(notes.closures)


class Scripted(Chaos):
    """An engine of one worker whose answers are given; notes the tasks."""

    def __init__(self, toy: Toy, answer: Callable[[SubproblemTask], Ended | None]) -> None:
        super().__init__(toy, 1, 0)
        self.tasks: list[SubproblemTask] = []
        self._script = answer

    @property
    def ahead(self) -> int:
        return 0

    def wait(self, timeout_s: float) -> Sequence[Ended]:
        if not self._tasks:
            return ()
        self.tasks.append(self._tasks.pop())
        scripted = self._script(self.tasks[-1])
        if scripted is None:
            return (self._space.close(self.tasks[-1], self),)
        del timeout_s
        return (scripted,)


def only(cube: Subproblem, ended: Ended) -> Callable[[SubproblemTask], Ended | None]:
    """The answer to one cube; others are closed as they should be."""
    return lambda task: ended if task.cube == cube else None


GOOD = Member(0, (0, 0, 0, 0), "[0, 0, 0, 0]")
SOLVED, EMPTY = SubproblemVerdict.SOLVED, SubproblemVerdict.EMPTY


@pytest.mark.parametrize(
    ("closure", "message"),
    [
        (Closure(ZERO, SOLVED, 0, (replace(GOOD, value=-9),)), "not what its witness stands for"),
        (Closure(ZERO, SOLVED, 0, (replace(GOOD, tie=(9,)),)), "not what its witness stands for"),
        (Closure(ZERO, SOLVED, 0, (replace(GOOD, witness="[1]"),)), "not what its witness"),
        (Closure(ZERO, SOLVED), "is called solved and has no member"),
        (Closure(ZERO, SOLVED, 1, (GOOD,)), "a bound above its best member"),
        (Closure(ZERO, EMPTY, best=(GOOD,)), "is called 'empty' and has members"),
        (Closure(ZERO, SubproblemVerdict.LISTED, count=1, digest="0"), "the verdict 'listed'"),
        (Closure(ZERO, SubproblemVerdict.BOUNDED, -99), "a bound below the members"),
        (Closure(ZERO, SubproblemVerdict.BOUNDED), "a bound below the members"),
    ],
)
def test_a_wrong_answer_is_found(closure: Closure, message: str) -> None:
    with pytest.raises(EncodingBug, match=message):
        search(TOY, Scripted(TOY, only(ZERO, closure)))


@pytest.mark.parametrize(
    ("asked", "closure", "message"),
    [
        (SearchKind.ENUMERATE, Closure(ZERO, SOLVED, 0, (GOOD,)), "no enumerate search knows"),
        (SearchKind.ENUMERATE, Closure(ZERO, SubproblemVerdict.LISTED), "without count and digest"),
        (SearchKind.DECIDE, Closure(ZERO, SubproblemVerdict.BOUNDED, 9), "no decide search knows"),
    ],
)
def test_a_verdict_that_was_not_asked_for_is_found(
    asked: SearchKind, closure: Closure, message: str
) -> None:
    toy = replace(TOY, asked=asked)
    with pytest.raises(EncodingBug, match=message):
        search(toy, Scripted(toy, only(ZERO, closure)))


def test_members_out_of_order_are_found() -> None:
    worse = TOY.member("[1, 0, 0, 0]")
    closure = Closure(ZERO, SOLVED, 0, (worse, GOOD))
    with pytest.raises(EncodingBug, match="out of order"):
        search(TOY, Scripted(TOY, only(ZERO, closure)), top=2)


class AnotherCube(Toy):
    """Closes another cube than it was given."""

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        return Toy.close(self, replace(task, cube=task.cube.under("0")), signals)


def test_another_cube_than_the_task_s_is_found() -> None:
    space = AnotherCube((1, 2, 3))
    with pytest.raises(EncodingBug, match="another cube was closed"):
        search(space, InProcess(space))


def test_cubes_go_out_by_bound_and_the_best_members_with_them() -> None:
    engine = Scripted(TOY, lambda _: None)
    outcome = search(TOY, engine, top=3, seed=7, threads=3)
    assert [m.value for m in outcome.best] == [0, 1, 2]
    assert [t.cube.path for t in engine.tasks] == [("0", "0"), ("0", "1")]
    assert engine.tasks[0] == SubproblemTask(ZERO, 3, (), None, None, 7, 3)
    assert [m.value for m in engine.tasks[1].known] == [0, 1, 5]
    assert dict(outcome.closed)[SubproblemVerdict.BOUNDED] == 2


def test_a_cube_over_its_budget_is_split_and_one_that_cannot_be_goes_without() -> None:
    toy, notes = Toy((1, 2), depth=1, splits_at=2), Notes()
    engine = Scripted(toy, lambda t: OverBudget(t.cube) if t.budget_s else None)
    outcome = search(toy, engine, budget_s=0.5, journal=notes)
    assert_right(toy, 1, outcome)
    assert outcome.splits == len(notes.splits) == 1
    assert notes.splits[0] == (Subproblem(("0",)), (Subproblem(("0", "0")), Subproblem(("0", "1"))))
    last = [t for t in engine.tasks if t.cube.path == ("0", "0")]
    assert [t.budget_s for t in last] == [0.5, None]


def test_members_of_a_cube_over_its_budget_count() -> None:
    engine = Scripted(TOY, only(ZERO, OverBudget(ZERO, (GOOD,))))
    outcome = search(TOY, engine, budget_s=1.0)
    assert_right(TOY, 1, outcome)
    assert dict(outcome.closed) == {SubproblemVerdict.BOUNDED: 5}
    assert [t.cube for t in engine.tasks] == [ZERO, ZERO.under("0")], "a formula closed the rest"


class Blind(Toy):
    """A toy without a formula for bounds."""

    def bound(self, cube: Subproblem) -> int:  # noqa: ARG002
        return 0


class Twice(Chaos):
    """Says everything twice."""

    def wait(self, timeout_s: float) -> Sequence[Ended]:
        return [ended for ended in Chaos.wait(self, timeout_s) for _ in range(2)]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_said_twice_counts_once(seed: int) -> None:
    toy = Toy((3, -2, 5, 1), 5, 2, 1, SearchKind.ENUMERATE, splits_at=3)
    engine, notes = Twice(toy, 2, seed), Notes()
    outcome = search(toy, engine, budget_s=1.0, journal=notes)
    assert_right(toy, 1, outcome)
    assert len({c.cube for c in notes.closures}) == len(notes.closures)
    assert len({cube for cube, _ in notes.splits}) == len(notes.splits) == outcome.splits
    assert outcome.deaths <= engine.deaths


def test_what_is_known_of_a_cube_holds_for_its_parts_and_the_other_way_round() -> None:
    for at_least, bound in ((1, 2), (7, 7), (None, 2)):
        frontier = Frontier(TOY)
        frontier.add(Subproblem(("0", "1")), at_least)
        assert frontier.bounds == {Subproblem(("0", "1")): bound}


class Alike(Blind):
    """Members whose ties do not tell them apart: their witnesses do."""

    def members_in(self, cube: Subproblem) -> Iterator[Member]:
        return (replace(m, tie=()) for m in Blind.members_in(self, cube))

    def member(self, witness: str) -> Member:
        return replace(Blind.member(self, witness), tie=())


def test_equal_ties_close_no_cube() -> None:
    space = Alike((0, 0, 0), depth=2)
    last = OverBudget(ZERO, (space.member("[1, 1, 1]"),))
    assert_right(space, 1, search(space, Scripted(space, only(ZERO, last)), budget_s=1.0))


def test_parts_on_record_say_more_than_a_cube_that_was_given_up() -> None:
    children = TOY.split(ZERO)
    notes = Notes(closures=[Closure(ZERO, SubproblemVerdict.UNKNOWN, 0)], splits=[(ZERO, children)])
    assert_right(TOY, 1, search(TOY, InProcess(TOY), journal=notes.again(None)))


def test_three_deaths_leave_a_cube_unknown_with_its_bound() -> None:
    cube, notes = ZERO, Notes()
    engine = Scripted(TOY, only(cube, WorkerDied(cube)))
    outcome = search(TOY, engine, journal=notes)
    assert (outcome.status, outcome.deaths) == (Status.FEASIBLE, 3)
    assert (outcome.unknown_subproblems, outcome.bound) == ((cube,), TOY.bound(cube))
    assert outcome.reason == "1 cube was given up after 3 deaths of workers"
    (unknown,) = [c for c in notes.closures if c.verdict is SubproblemVerdict.UNKNOWN]
    assert (unknown.bound, unknown.by_formula) == (TOY.bound(cube), True)


def test_an_unknown_cube_beyond_the_best_ones_leaves_a_proof() -> None:
    """Its bound is proved, however it was closed."""
    toy, cube = Blind((5, 3), depth=1), Subproblem(("1",))
    for bound, status in ((1, Status.OPTIMAL), (0, Status.FEASIBLE), (None, Status.FEASIBLE)):
        unknown = Closure(cube, SubproblemVerdict.UNKNOWN, bound)
        outcome = search(toy, Scripted(toy, only(cube, unknown)))
        assert (outcome.status, outcome.bound) == (status, 0)


class Ties(Blind):
    """Equal values, and a formula for the order among them: cubes are closed by it alone."""

    def tie_bound(self, cube: Subproblem) -> tuple[int, ...]:
        return tuple(map(int, cube.path))


def test_equal_bounds_are_closed_by_ties_only_if_the_space_has_them() -> None:
    for kind, worked in ((Ties, 1), (Blind, 4)):
        space = kind((0, 0, 0), depth=2)
        engine = Scripted(space, lambda _: None)
        assert_right(space, 1, search(space, engine))
        assert len(engine.tasks) == worked


def test_the_end_of_the_time_leaves_cubes_open_and_is_no_proof() -> None:
    notes = Notes()
    toy = Blind((3, 2, 5, 1), depth=3, pause_s=0.02)
    watch = StopWatch.start(SearchLimits(time_limit_s=0.05))
    outcome = search(toy, InProcess(toy), watch=watch, journal=notes)
    assert outcome.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert (outcome.reason, outcome.interrupted) == (OUT_OF_TIME, False)
    assert outcome.open_subproblems
    assert all(c.verdict is not SubproblemVerdict.UNKNOWN for c in notes.closures)
    assert_right(toy, 1, search(toy, InProcess(toy), journal=notes.again(None)))


def test_without_time_no_engine_is_entered() -> None:
    watch = StopWatch.start(SearchLimits(time_limit_s=0.0))
    engine = Scripted(TOY, lambda _: None)
    outcome = search(TOY, engine, watch=watch)
    assert (outcome.status, outcome.bound) == (Status.UNKNOWN, 0)
    assert engine.tasks == []


def test_what_is_on_record_is_not_done_again() -> None:
    notes = Notes()
    first = search(TOY, InProcess(TOY), top=2, journal=notes)
    engine = Scripted(TOY, lambda _: None)
    again = search(TOY, engine, top=2, journal=notes.again(None))
    assert engine.tasks == []
    assert replace(again, elapsed_s=0.0) == replace(first, elapsed_s=0.0)


def test_a_bounded_cube_whose_reason_is_lost_is_open_again() -> None:
    notes = Notes(closures=[Closure(ZERO, SubproblemVerdict.BOUNDED, 7)])
    assert_right(TOY, 1, search(TOY, InProcess(TOY), journal=notes.again(None)))


def test_a_record_that_splits_otherwise_is_refused() -> None:
    notes = Notes(splits=[(ZERO, (ZERO.under("0"),))])
    with pytest.raises(InputError, match="must be the parts that this search splits it into"):
        search(TOY, InProcess(TOY), journal=notes.again(None))


def test_a_member_on_record_that_is_none_is_refused() -> None:
    notes = Notes(members=[replace(GOOD, value=-5)])
    with pytest.raises(EncodingBug, match="not what its witness stands for"):
        search(TOY, InProcess(TOY), journal=notes.again(None))


def test_an_incumbent_is_on_record_before_the_cube_that_brought_it() -> None:
    lines: list[str] = []

    class Order(Notes):
        def closed(self, closure: Closure) -> None:
            lines.extend(m.witness for m in closure.best)

        def incumbent(self, member: Member) -> None:
            lines.append(f"incumbent {member.witness}")

    search(TOY, InProcess(TOY), journal=Order())
    assert lines == ["incumbent [0, 0, 0, 0]", "[0, 0, 0, 0]"]


def test_progress_ends_with_nothing_to_do() -> None:
    seen: list[SearchProgress] = []
    outcome = search(TOY, InProcess(TOY), progress=seen.append)
    assert (seen[-1].open_subproblems, seen[-1].in_flight, seen[-1].gap) == (0, 0, 0.0)
    assert (seen[-1].closed, seen[-1].incumbent) == (outcome.closed, outcome.best[0])
    assert (seen[-1].bound, seen[-1].to_go_s) == (0, 0.0)
    first = seen[0]
    assert first.open_subproblems + sum(n for _, n in first.closed) == 4
    assert first.to_go_s is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top": 0}, "top 0: the number of best members must be at least 1"),
        ({"budget_s": 0.0}, "budget 0.0 s: the budget of a cube must be above 0"),
        ({"budget_s": float("nan")}, "the budget of a cube must be above 0"),
        ({"threads": 0}, "threads 0: the number of solver threads must be at least 1"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        search(TOY, InProcess(TOY), **options)
