"""Running solvers: shared time limits, Ctrl-C, exact bounds."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import z3
from ortools.sat.python import cp_model

from p2smt.cli.signals import Interrupts
from p2smt.encodings.run_cpsat import proved_bound, run
from p2smt.encodings.run_z3 import new_solver, solution, spent
from p2smt.errors import EncodingBug, GaveUpError, OutOfTimeError
from p2smt.result import OUT_OF_EFFORT, OUT_OF_TIME, SearchLimits, StopWatch

NO_LIMIT = SearchLimits()


def split_evenly() -> cp_model.CpModel:
    """Six market-split equations over fifty Booleans: far beyond a minute."""
    model, draw = cp_model.CpModel(), random.Random(1)
    flags = [model.new_bool_var(f"x{k}") for k in range(50)]
    for _ in range(6):
        weights = [draw.randint(0, 99) for _ in flags]
        model.add(sum(w * x for w, x in zip(weights, flags, strict=True)) == sum(weights) // 2)
    return model


def cubes() -> z3.Solver:
    """A non-linear equation over the integers: no verdict for a long time."""
    solver = new_solver(0)
    numbers = [z3.Int(f"x{k}") for k in range(12)]
    solver.add([z3.And(x > 2, x < 10**9) for x in numbers])
    solver.add(z3.Sum([x * x * x for x in numbers]) == 10**27 + 3)
    solver.add(z3.Product(numbers) == 7**20)
    return solver


TEN_MINUTES = SearchLimits(time_limit_s=600)
"""So long a search goes on that nobody stops."""


def becomes_idle() -> bool:
    """Whether all threads of this process stop computing, sooner or later."""
    for _ in range(1000):
        before_s = time.process_time()
        time.sleep(0.3)
        if time.process_time() - before_s < 0.01:
            return True
    return False


@pytest.fixture
def as_the_command_line() -> Iterator[None]:
    """Signals as the command line takes them."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    Interrupts().install()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    "search",
    [
        lambda: run(split_evenly(), TEN_MINUTES),
        lambda: solution(cubes(), StopWatch.start(TEN_MINUTES)),
    ],
    ids=["cpsat", "z3"],
)
@pytest.mark.usefixtures("as_the_command_line")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_the_search_and_goes_on(
    search: Callable[[], object], number: signal.Signals
) -> None:
    timer = threading.Timer(0.5, os.kill, (os.getpid(), number))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        search()
    timer.cancel()
    assert becomes_idle()


def test_the_time_limit_of_a_search_holds() -> None:
    _, status = run(split_evenly(), SearchLimits(time_limit_s=0.2))
    assert status == cp_model.UNKNOWN
    with pytest.raises(OutOfTimeError):
        solution(cubes(), StopWatch.start(SearchLimits(time_limit_s=0.2)))


@pytest.mark.parametrize("limit_s", [0.0, -1.0])
def test_without_time_nothing_is_solved(limit_s: float) -> None:
    _, status = run(cp_model.CpModel(), SearchLimits(time_limit_s=limit_s))
    assert status == cp_model.UNKNOWN
    with pytest.raises(OutOfTimeError):
        solution(new_solver(0), StopWatch.start(SearchLimits(time_limit_s=limit_s)))


def test_a_watch_shares_one_limit() -> None:
    watch = StopWatch.start(SearchLimits(time_limit_s=1000.0, seed=5))
    left = watch.left()
    assert left.seed == 5
    assert left.time_limit_s is not None
    assert 0 < left.time_limit_s <= 1000
    assert not watch.expired()
    assert StopWatch.start(SearchLimits(time_limit_s=0.0)).expired()
    assert StopWatch.start(NO_LIMIT).left() == NO_LIMIT


def test_objectives_near_2_to_60_are_exact() -> None:
    model = cp_model.CpModel()
    x, y = model.new_int_var(0, 2**60, "x"), model.new_int_var(0, 1, "y")
    model.add(x + 3 * y >= 2**60 - 5)
    model.minimize(x + y)
    solver, status = run(model, NO_LIMIT)
    assert (status, proved_bound(solver)) == (cp_model.OPTIMAL, 2**60 - 7)
    assert solver.value(x + y) == 2**60 - 7


def test_an_enumeration_shows_every_solution_once_with_any_worker_count() -> None:
    model = cp_model.CpModel()
    x = model.new_int_var(0, 9, "x")

    class Note(cp_model.CpSolverSolutionCallback):
        found: tuple[int, ...] = ()

        def on_solution_callback(self) -> None:
            self.found += (self.value(x),)

    note = Note()
    _, status = run(model, SearchLimits(workers=4), note, every=True)
    assert status == cp_model.OPTIMAL
    assert sorted(note.found) == list(range(10))


def test_a_model_that_cpsat_rejects_is_a_bug() -> None:
    model = cp_model.CpModel()
    x = model.new_int_var(0, 2**62, "x")
    model.add(2**10 * x >= 3)
    with pytest.raises(EncodingBug, match="invalid CP-SAT model"):
        run(model, NO_LIMIT)


def pigeons(count: int = 11) -> z3.Solver:
    """One pigeon more than holes: short to state, long to refute."""
    solver = new_solver(0)
    sits = [[z3.Bool(f"{p}in{h}") for h in range(count - 1)] for p in range(count)]
    solver.add([z3.Or(row) for row in sits])
    solver.add([z3.AtMost(*column, 1) for column in zip(*sits, strict=True)])
    return solver


def test_what_ended_a_search_is_told() -> None:
    """Effort, time and what z3 cannot decide are three things."""
    effort = StopWatch.start(SearchLimits(effort=1000))
    with pytest.raises(GaveUpError, match=OUT_OF_EFFORT):
        solution(pigeons(), effort)
    with pytest.raises(OutOfTimeError, match=OUT_OF_TIME):
        solution(pigeons(), StopWatch.start(SearchLimits(time_limit_s=0.05)))
    open_question = new_solver(0)
    base, power = z3.Ints("base power")
    open_question.add(base**power == 7, power > 5)
    with pytest.raises(GaveUpError, match="z3 gave up"):
        solution(open_question, StopWatch.start(NO_LIMIT))


def test_effort_is_counted_the_same_each_time() -> None:
    def effort_of() -> int:
        solver = pigeons()
        before = spent(solver)
        with pytest.raises(GaveUpError):
            solution(solver, StopWatch.start(SearchLimits(effort=2000)))
        return spent(solver) - before

    assert effort_of() == effort_of() >= 2000
