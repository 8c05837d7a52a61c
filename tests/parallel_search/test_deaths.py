"""Workers and coordinators that are killed: the same answer, no cube twice, no process left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from p2smt.errors import ExecutionError, InputError
from p2smt.parallel_search.best import digest_of
from p2smt.parallel_search.coordinate import search
from p2smt.parallel_search.engine import SearchOutcome, WorkerDied
from p2smt.parallel_search.engines.processes import Processes
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    SearchKind,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from p2smt.result import Status
from tests.interpreter import ran
from tests.parallel_search.slices import EACH, Slices, marked, workers_of
from tests.tiers import but_the_first

KILLS_IN_CI, KILLS = 5, 100
ENDS_IN_CI, ENDS = 2, 20
pytestmark = pytest.mark.cluster


def assert_all_listed(space: Slices, outcome: SearchOutcome) -> None:
    """No cube lost, none counted twice."""
    members = space.members()
    assert outcome.status is Status.COMPLETE
    assert outcome.closed == ((SubproblemVerdict.LISTED, space.slices),)
    assert outcome.count == len(members)
    assert outcome.digest == digest_of(m.witness for m in members)
    assert outcome.best == tuple(members[:3])


class KillsTwo:
    """A record that kills a worker that has a cube for certain, the one of the held slice, and
    any worker at a random closure: it works, sends what it found, has nothing, or starts.
    """

    resumed = None

    def __init__(self, draw: random.Random, space: Slices) -> None:
        self._draw, self._after = draw, draw.randrange(1, space.slices - 20)
        self._holder = space.holder
        self._over = threading.Event()
        self._killer = threading.Thread(target=self._kill_holder)

    def __enter__(self) -> KillsTwo:
        self._killer.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._killer.join()

    def closed(self, _closure: Closure) -> None:
        self._after -= 1
        if self._after == 0 and (workers := workers_of(os.getpid())):
            _kill(self._draw.choice(workers))

    def split(self, *_: object) -> None:
        raise AssertionError("nothing is split")

    def incumbent(self, _member: Member) -> None:
        pass

    def _kill_holder(self) -> None:
        while not self._holder.exists() and not self._over.wait(0.01):
            pass
        if self._holder.exists():
            _kill(int(self._holder.read_text()))


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def search_with_kills(runs: int, seed: int, folder: Path) -> None:
    """Search so often; in each one worker or two die at a cube."""
    draw = random.Random(seed)
    for run in range(runs):
        notes = folder / f"{run}"
        notes.mkdir()
        space = Slices(notes=str(notes), held=draw.randrange(200))
        with KillsTwo(draw, space) as record:
            outcome = search(space, Processes(space, 4), top=3, journal=record)
        assert_all_listed(space, outcome)
        assert workers_of(os.getpid()) == []
        assert 1 <= outcome.deaths <= 2


@pytest.mark.exhaustive
def test_killed_workers_change_nothing(tmp_path: Path) -> None:
    search_with_kills(KILLS_IN_CI, 1, tmp_path)


@pytest.mark.evidence
def test_a_hundred_killed_workers_change_nothing(tmp_path: Path) -> None:
    search_with_kills(KILLS, 2, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("asked", but_the_first(*SearchKind))
def test_a_cube_that_kills_three_workers_is_given_up(tmp_path: Path, asked: SearchKind) -> None:
    """Others go on; what it may hold is not claimed."""
    space = Slices(12, 0.01, asked, ((7, 99), (3, 2)), str(tmp_path))
    outcome = search(space, Processes(space, 2), top=2)
    assert outcome.unknown_subproblems == (
        (Subproblem(("007",)),) if asked is not SearchKind.DECIDE else ()
    )
    match asked:
        case SearchKind.ENUMERATE:
            assert outcome.status is Status.TRUNCATED
            assert (outcome.count, outcome.deaths) == (11 * EACH, 5)
        case SearchKind.OPTIMISE:
            assert (outcome.status, outcome.bound) == (Status.FEASIBLE, 0)
        case SearchKind.DECIDE:
            assert outcome.status is Status.OPTIMAL
    assert outcome.open_subproblems == () or asked is SearchKind.DECIDE


@pytest.mark.exhaustive
def test_bad_input_in_a_worker_is_told_as_it_is() -> None:
    space = Slices(8, 0.0, broken=5)
    with pytest.raises(InputError, match="slice 5: is broken; take another") as caught:
        search(space, Processes(space, 2))
    assert caught.value.remedy == "take another"
    assert workers_of(os.getpid()) == []


@pytest.mark.exhaustive
def test_a_worker_that_dies_idle_costs_no_cube_and_others_no_work() -> None:
    space = Slices(4, 0.0)
    with Processes(space, 1) as engine:
        (worker,) = workers_of(os.getpid())
        os.kill(worker, signal.SIGKILL)
        while workers_of(os.getpid()):
            time.sleep(0.01)
        time.sleep(0.2)  # the pool notices
        engine.submit(SubproblemTask(Subproblem(("002",))))
        ended = [*engine.wait(600.0)]
        assert [e.cube for e in ended] == [Subproblem(("002",))]
        if isinstance(ended[0], WorkerDied):  # it had not noticed yet
            engine.submit(SubproblemTask(Subproblem(("002",))))
            (ended[0],) = engine.wait(600.0)
        assert not isinstance(ended[0], WorkerDied)


COORDINATOR = """
import sys
from p2smt.parallel_search.coordinate import search
from p2smt.parallel_search.engines.processes import Processes
from tests.parallel_search.slices import Slices

if __name__ == "__main__":
    space = Slices({slices}, {pause_s})
    print("ready", flush=True)
    outcome = search(space, Processes(space, 2))
    print(outcome.status.value, outcome.interrupted, outcome.count, flush=True)
"""


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Callable[[int, float], subprocess.Popen[str]]]:
    """Starts coordinators in a group of their own, with the fixture's mark in the environment."""
    mark, started = f"MARK={uuid.uuid4()}", list[subprocess.Popen[str]]()

    def start(slices: int, pause_s: float) -> subprocess.Popen[str]:
        script = tmp_path / "coordinator.py"
        script.write_text(COORDINATOR.format(slices=slices, pause_s=pause_s))
        environment = {**os.environ, "PYTHONPATH": os.getcwd(), "MARK": mark[5:]}
        process = subprocess.Popen(
            [sys.executable, str(script)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    until_s = time.monotonic() + 600
    while marked(mark) and time.monotonic() < until_s:
        time.sleep(0.02)
    left = marked(mark)
    for process in started:
        process.communicate(timeout=600)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == [], "processes outlived their parent"


Coordinators = Callable[[int, float], subprocess.Popen[str]]


@pytest.mark.parametrize("runs", but_the_first(ENDS_IN_CI, ENDS))
def test_workers_end_with_a_killed_coordinator(runs: int, coordinator: Coordinators) -> None:
    """At any moment: while they start, and while they work on what never ends."""
    draw = random.Random(runs)
    for run in range(runs):
        process = coordinator(4, 1e9)
        if run % 2 == 0:
            while len(workers_of(process.pid)) < 2:
                time.sleep(0.01)
        time.sleep(draw.uniform(0.0, 0.6))
        process.kill()


def test_an_interrupt_of_all_processes_ends_the_search_with_what_it_has(
    coordinator: Coordinators,
) -> None:
    """As Ctrl-C at a terminal does; the workers say nothing of it."""
    process = coordinator(2000, 0.5)
    while len(workers_of(process.pid)) < 2:
        time.sleep(0.01)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=600)
    status, interrupted, count = out.split()
    assert (status, interrupted, err) == ("truncated", "True", "")
    assert int(count) < 2000 * EACH


def test_a_script_without_guard_is_told(tmp_path: Path) -> None:
    """Each worker would run it again from its first line."""
    script = tmp_path / "careless.py"
    script.write_text(
        "from p2smt.parallel_search.coordinate import search\n"
        "from p2smt.parallel_search.engines.processes import Processes\n"
        "from tests.parallel_search.slices import Slices\n"
        "space = Slices(2)\n"
        "search(space, Processes(space, 1))\n"
    )
    done = ran(sys.executable, str(script), environment={"PYTHONPATH": os.getcwd()})
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert ExecutionError.__name__ in last
    assert '`if __name__ == "__main__":`' in last
