"""What engines tell their workers and bring back, seen from spaces that look and misbehave."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.parallel_search.best import NOTHING, digest_of, joined_digest
from p2smt.parallel_search.coordinate import search
from p2smt.parallel_search.engine import Ended, Engine, WorkerDied
from p2smt.parallel_search.engines.processes import (
    SIZE,
    BoardWriter,
    CutoffReader,
    Processes,
    new_board,
)
from p2smt.parallel_search.parallel_options import InProcess
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    Signals,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from p2smt.result import SearchLimits, Status, StopWatch
from tests.parallel_search.slices import Slices, workers_of
from tests.strategies.draws import Draws, draws

CUBE = Subproblem(("000",))
members = st.builds(
    Member, st.integers(-(2**70), 2**70), st.lists(st.integers()).map(tuple), st.text()
)


@given(st.lists(members, max_size=5))
def test_a_board_shows_the_last_member_that_fits(told: list[Member]) -> None:
    memory = new_board(multiprocessing.get_context("spawn"))
    writer, reader = BoardWriter(memory), CutoffReader(memory)
    assert reader.cutoff() is None
    for member in told:
        writer.tell(member)
        assert reader.cutoff() == member
        writer.tell(Member(0, (), "x" * SIZE))
        assert reader.cutoff() == member
    assert not reader.stopped()
    writer.stop()
    assert reader.stopped()


def test_what_is_half_written_is_not_read() -> None:
    memory = new_board(multiprocessing.get_context("spawn"))
    old, new = Member(5, (1,), "old"), Member(4, (1,), "new")
    BoardWriter(memory).tell(old)
    reader = CutoffReader(memory)
    assert reader.cutoff() == old
    before = bytes(memory)
    writer = BoardWriter(memory)
    writer.tell(old)
    writer.tell(new)
    after = bytes(memory)
    end = max(k for k in range(SIZE) if before[k] != after[k])
    for cut in range(end + 1):
        memory[:] = after[:cut] + before[cut:]
        assert CutoffReader(memory).cutoff() in (None, old)
    memory[:] = after
    assert reader.cutoff() == new


@given(st.lists(st.text(), unique=True), draws())
def test_digests_of_parts_add_up(witnesses: list[str], data: Draws) -> None:
    cut = data.draw(st.integers(0, len(witnesses)))
    parts = [digest_of(witnesses[cut:]), digest_of(witnesses[:cut])]
    assert joined_digest(parts) == digest_of(witnesses)
    assert digest_of([]) == joined_digest([]) == NOTHING
    assert witnesses == [] or digest_of(witnesses[1:]) != digest_of(witnesses)


@dataclass(frozen=True, slots=True)
class Watching(Slices):
    """Closes a cube once it hears a cutoff, or is told to stop."""

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        while not signals.stopped():
            cutoff = signals.cutoff()
            if cutoff is not None:
                return Closure(task.cube, SubproblemVerdict.BOUNDED, cutoff.value)
            time.sleep(0.005)
        return Closure(task.cube, SubproblemVerdict.UNKNOWN)


def patient(engine: Engine) -> list[Ended]:
    """What comes back first."""
    while not (found := engine.wait(0.2)):
        pass
    return [*found]


@pytest.mark.exhaustive
def test_a_cutoff_reaches_a_worker_at_its_cube() -> None:
    with Processes(Watching(), 2) as engine:
        engine.submit(SubproblemTask(CUBE, seed=9))
        engine.submit(SubproblemTask(Subproblem(("001",))))
        assert engine.wait(0.1) == []
        engine.tell(Member(77, (1, 2), "cutoff"))
        ended = patient(engine)
        while len(ended) < 2:
            ended += patient(engine)
        first = min(ended, key=lambda e: e.cube)
        assert isinstance(first, Closure)
        assert (first.bound, first.seed) == (77, 9)
        assert first.seconds > 0
        assert {e.worker for e in ended if isinstance(e, Closure)} == {"process 1", "process 2"}


@pytest.mark.exhaustive
def test_workers_that_are_told_to_stop_give_up() -> None:
    with Processes(Watching(), 1) as engine:
        engine.submit(SubproblemTask(CUBE))
        engine.stop()
        (ended,) = patient(engine)
        assert isinstance(ended, Closure)
        assert ended.verdict is SubproblemVerdict.UNKNOWN


def test_the_end_of_the_time_stops_workers_at_their_cubes() -> None:
    """They give up as they are told, and what they had is open."""
    space = Slices(4, 1e9)
    watch = StopWatch.start(SearchLimits(time_limit_s=0.3))
    outcome = search(space, Processes(space, 2), watch=watch)
    assert (outcome.status, len(outcome.open_subproblems)) == (Status.TRUNCATED, 4)
    assert workers_of(os.getpid()) == []


@dataclass(frozen=True, slots=True)
class Stubborn(Slices):
    """Hears nothing."""

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        del task, signals
        while True:
            time.sleep(0.05)


@pytest.mark.exhaustive
def test_workers_that_do_not_listen_are_ended() -> None:
    space = Stubborn(4)
    watch = StopWatch.start(SearchLimits(time_limit_s=0.1))
    assert search(space, Processes(space, 2), watch=watch).status is Status.TRUNCATED
    assert workers_of(os.getpid()) == []


class Unpicklable(Exception):
    """Comes out of pickling with an error, as exceptions with arguments of their own do."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


@dataclass(frozen=True, slots=True)
class Raising(Slices):
    """Raises what does not survive pickling."""

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        raise Unpicklable(task.cube.path[0], str(signals.stopped()))


@pytest.mark.exhaustive
def test_an_exception_that_would_break_the_pool_is_worded() -> None:
    with pytest.raises(TypeError):
        pickle.loads(pickle.dumps(Unpicklable("this", "that")))
    space = Raising(2)
    with pytest.raises(RuntimeError, match=r"Unpicklable: 00\d and False"):
        search(space, Processes(space, 1))


def refuse() -> None:
    """What another process calls to make the space."""
    raise InputError("the space", "does not load")


@dataclass(frozen=True, slots=True)
class Unloadable(Slices):
    """Cannot be made in another process."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return refuse, ()


@pytest.mark.exhaustive
def test_a_space_that_does_not_load_is_told() -> None:
    space = Unloadable(2)
    with pytest.raises(InputError, match="the space: does not load"):
        search(space, Processes(space, 1))
    assert workers_of(os.getpid()) == []


def send_a_part(connection: Connection, data: memoryview) -> None:
    """Write some bytes of a large answer, and die."""
    os.write(connection.fileno(), data[: len(data) // 2])
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Bulky(Slices):
    """Dies in the middle of handing over its answer; the worker that comes after it does not."""

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        if task.seed == 0 and not signals.stopped():
            Connection._send = send_a_part  # type: ignore[attr-defined]
        best = (Member(0, (), "x" * 30_000),)
        return Closure(task.cube, SubproblemVerdict.SOLVED, best=best)


def test_a_worker_killed_in_the_middle_of_its_answer_is_noticed() -> None:
    """CPython's pool would read the rest of it for ever."""
    with Processes(Bulky(), 1) as engine:
        engine.submit(SubproblemTask(CUBE, seed=0))
        assert patient(engine) == [WorkerDied(CUBE)]
        engine.submit(SubproblemTask(CUBE, seed=1))
        (ended,) = patient(engine)
        assert isinstance(ended, Closure)


@pytest.mark.exhaustive
def test_the_end_does_not_wait_for_half_an_answer() -> None:
    threads = threading.active_count()
    with Processes(Bulky(), 1) as engine:
        engine.submit(SubproblemTask(CUBE, seed=0))
        while workers_of(os.getpid()):
            time.sleep(0.01)
    last = time.monotonic() + 600
    while threading.active_count() > threads and time.monotonic() < last:
        time.sleep(0.01)  # they end by themselves, or never
    assert threading.active_count() <= threads, "the threads of the pool have ended"


@pytest.mark.parametrize("count", [0, -1])
def test_there_is_at_least_one_process(count: int) -> None:
    with pytest.raises(InputError, match=f"processes {count}: must be at least 1"):
        Processes(Slices(), count)


def test_an_engine_in_process_is_told_with_its_next_cube() -> None:
    engine = InProcess(Watching())
    with engine:
        assert engine.wait(0.0) == ()
        engine.tell(Member(3, (), ""))
        engine.submit(SubproblemTask(CUBE))
        (ended,) = engine.wait(0.0)
        assert isinstance(ended, Closure)
        assert (ended.bound, ended.worker) == (3, "in-process")
        engine.submit(SubproblemTask(CUBE))
        engine.stop()
        assert engine.wait(0.0) == ()
        assert engine.stopped()
