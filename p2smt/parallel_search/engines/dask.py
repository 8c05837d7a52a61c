"""Cubes closed by workers of a Dask cluster: of one on this machine, or of the user's own.

A worker closes one cube at a time, and has another one at hand, so that it need not wait for the
coordinator; one that has none takes what waits behind another's.  Each cube is pinned to the worker
that it is for, so that the death of a worker is told for each cube that it had, and is never
repaired by Dask behind the coordinator's back.  Cutoffs and the end of the search go to all workers
by ``Client.run``, which their event loops answer while a cube is being closed.  When the
coordinator dies, the scheduler gives up its cubes, and the workers see that (``_Signals``); the
processes of a cluster on this machine end with it, by Dask's own watch on the parent.

Results come by Dask's events, ahead of the future that has them too: fetching that takes two more
round trips.  And futures are let go a while later, since what is sent first makes the next message
wait (Dask sends to a scheduler every 10 ms, to a worker every 5 ms).

dask.distributed is the extra ``cluster``.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.parallel_search.engine import Ended, NotBegun, WorkerDied
from p2smt.parallel_search.engines.dask_worker import (
    Worked,
    closed_there,
    forget,
    greeting,
    hear,
    require_one_thread,
    require_same,
    result_of,
)
from p2smt.parallel_search.engines.processes import start_tracker
from p2smt.parallel_search.subproblem import Member, Space, SubproblemTask

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster


LOOK_S = 1.0
"""Seconds between two looks at which workers there are; each is a round trip to the scheduler."""
FETCH_S = 1.0
"""Seconds in which a result arrives that a worker has, or else it is looked for."""

_AT_HAND = 2
"""Cubes of a worker: the one that it closes, and the next."""


class DaskEngine:
    """An engine over ``processes`` local Dask workers, or over those of the scheduler given.

    Raises, on entering:
        BackendError: dask.distributed is not installed.
        ExecutionError: (also of ``wait``) the scheduler is gone.
        InputError: the scheduler does not answer or has no workers; a worker has several threads,
            or other versions.
    """

    def __init__(self, space: Space, processes: int = 1, scheduler: str | None = None) -> None:
        if processes < 1:
            raise InputError(f"processes {processes}", "must be at least 1")
        self._space = pickle.dumps(space)
        self._processes, self._scheduler = processes, scheduler
        self._search = f"p2smt-{uuid4().hex}"
        self._numbers = 0
        self._checked: dict[str, bool] = {}  # the workers there are: whether each is used
        self._waiting: deque[SubproblemTask] = deque()
        self._assignments = Hands()
        self._done: queue.SimpleQueue[tuple[str, Worked | None]] = queue.SimpleQueue()
        self._spent: list[Given] = []  # came back, and their futures are not let go yet
        self._back: list[Ended] = []
        self._looked_s = 0.0
        self._stack = ExitStack()

    @property
    def workers(self) -> int:
        """How many workers there are to close cubes."""
        return sum(self._checked.values())

    @property
    def ahead(self) -> int:
        """One for each worker."""
        return (_AT_HAND - 1) * self.workers

    def __enter__(self) -> DaskEngine:
        """Connect, and ask every worker for its versions."""
        require_distributed()
        start_tracker()
        with ExitStack() as stack:
            self._address = self._scheduler or stack.enter_context(local_cluster(self._processes))
            self._client = stack.enter_context(connected(self._address, not self._scheduler))
            stack.callback(self._leave)
            self._client.subscribe_topic(self._client.id, self._result)
            self._messages = stack.enter_context(sent(self._tell_all, CONNECT_S))
            self._look(first=True)
            stack.callback(self._drop)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        """End what was started here; workers of the user's own cluster give up their cubes."""
        self._stack.__exit__(None, None, None)

    def submit(self, task: SubproblemTask) -> None:
        """Hand out a cube, as soon as a worker is free."""
        self._waiting.append(task)
        self._hand_out()

    def wait(self, timeout_s: float) -> Sequence[Ended]:
        """What came back, of living workers and of dead ones."""
        end_s = time.monotonic() + timeout_s
        while True:
            self._balance()
            back, self._back = self._back, []
            ended = [*back, *self._arrived(time.monotonic() if back else end_s), *self._lost()]
            self._require_scheduler()
            self._hand_out()
            if ended or time.monotonic() >= end_s:
                return ended

    def tell(self, cutoff: Member) -> None:
        """Send a cutoff to all workers, by another thread."""
        self._messages.put((cutoff, False))

    def stop(self) -> None:
        """Let all workers give up what they do; what they have at hand comes back as it was."""
        self._back += [NotBegun(task.cube) for task in self._waiting]
        self._waiting.clear()
        while late := self._assignments.behind():
            self._take_back(late)
            self._back.append(NotBegun(late.task.cube))
        self._messages.put((None, True))

    def _hand_out(self) -> None:
        """Give what waits to the workers that have least."""
        counts = self._assignments.counts()
        used = [worker for worker, is_used in self._checked.items() if is_used]
        for many in range(_AT_HAND):
            for worker in used:
                if self._waiting and counts[worker] == many:
                    self._give(self._waiting.popleft(), worker)
                    counts[worker] += 1

    def _balance(self) -> None:
        """Give idle workers what waits at others: nothing else waited for them."""
        counts = self._assignments.counts()
        for worker, is_used in self._checked.items():
            if is_used and counts[worker] == 0 and (late := self._assignments.behind()):
                self._take_back(late)
                self._give(late.task, worker)

    def _give(self, task: SubproblemTask, worker: str) -> None:
        self._numbers += 1
        key = f"{self._search}-{self._numbers}"
        arguments = (self._space, task, self._search, self._client.id)
        future = self._client.submit(
            closed_there, *arguments, key=key, pure=False, workers=[worker]
        )
        self._assignments.add(Given(task, worker, key, self._numbers, future))
        future.add_done_callback(lambda done: self._done.put((done.key, None)))

    def _take_back(self, given: Given) -> None:
        """What a worker has at hand; if it has just begun with it, it gives up."""
        self._assignments.take(given.key)
        given.future.cancel()

    def _arrived(self, end_s: float) -> Iterator[Ended]:
        """What workers gave back; waits for the first until then, or for the next look."""
        wait_s: float = min(LOOK_S, max(0.0, end_s - time.monotonic()))
        with suppress(queue.Empty):
            while True:
                key, ended = self._done.get(wait_s > 0, wait_s or None)
                if given := self._assignments.take(key):
                    self._spent.append(given)
                    yield ended or self._outcome(given)
                wait_s = 0.0

    def _result(self, event: tuple[float, object]) -> None:
        """An event of this client: a result, or one of Dask's own."""
        if (found := result_of(event[1])) is not None:
            self._done.put(found)

    def _lost(self) -> Iterator[Ended]:
        """The cubes of workers that are gone; looked for once in a while."""
        if time.monotonic() < self._looked_s + LOOK_S:
            return
        self._look()
        for given in self._assignments:
            if given.worker not in self._checked and self._assignments.take(given.key):
                given.future.cancel()
                yield self._assignments.lost(given)

    def _outcome(self, given: Given) -> Ended:
        """What became of a cube; the worker of one that was lost gets none before the next look.

        Raises:
            Exception: that of the worker.
        """
        from distributed import CancelledError, KilledWorker

        with suppress(KilledWorker, CancelledError, OSError):
            while True:
                try:
                    ended: Ended = given.future.result(timeout=FETCH_S)
                except TimeoutError:  # it was closed; has its worker gone since then?
                    if given.worker not in self._threads():
                        break
                else:
                    return ended
        given.future.cancel()
        self._checked.pop(given.worker, None)
        return self._assignments.lost(given)

    def _look(self, first: bool = False) -> None:
        """Which workers there are; those that are new are asked for their versions."""
        self._looked_s = time.monotonic()
        threads = self._threads()
        self._let_go(threads)
        new = [worker for worker in threads if worker not in self._checked]
        self._checked = {w: used for w, used in self._checked.items() if w in threads}
        theirs = versions_of(self._client, new) if new else {}
        for worker in theirs:
            try:
                require_same(worker, theirs[worker])
                require_one_thread(worker, threads[worker])
            except InputError:
                if first:
                    raise
                self._checked[worker] = False  # it came later, and gets no cube
            else:
                self._checked[worker] = True

    def _let_go(self, workers: Collection[str]) -> None:
        """Forget futures of cubes that came back, once their workers have said that they did."""
        still = [one for one in self._spent if not one.future.done()]
        self._spent = [one for one in still if one.worker in workers]
        for given in still:
            if given.worker not in workers:
                given.future.cancel()

    def _threads(self) -> dict[str, int]:
        """How many threads each worker has, by its address."""
        try:
            return dict(self._client.nthreads())
        except OSError as error:
            raise self._gone() from error

    def _require_scheduler(self) -> None:
        """Hold that the connection is there; a scheduler that comes back has forgotten all."""
        if self._client.status != "running":
            raise self._gone()

    def _gone(self) -> ExecutionError:
        text = f"the scheduler {self._address} is gone; a search with a journal continues from it"
        return ExecutionError(text)

    def _drop(self) -> None:
        """Let go of every cube that is still out."""
        self.stop()
        for given in (*self._assignments, *self._spent):
            given.future.cancel()
        self._spent.clear()

    def _tell_all(self, cutoff: Member | None, stopped: bool) -> None:
        tell_workers(self._client, hear, self._search, cutoff, stopped)

    def _leave(self) -> None:
        """Leave nothing of this search behind on the workers."""
        with suppress(Exception):  # Dask has a bare one for a scheduler that is no more
            self._client.unsubscribe_topic(self._client.id)
        tell_workers(self._client, forget, self._search)


# Dask's own parts of a search: a cluster on this machine, and connections to any.
# dask.distributed is the extra ``cluster``; it is imported when it is needed.


HERE = "127.0.0.1"
"""All servers of a local cluster listen on this address: who reaches one can run any code."""
CONNECT_S = 10.0
"""Seconds in which a scheduler must answer and have a worker."""
SPARING = {
    "distributed.worker.multiprocessing-method": "spawn",
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}
"""A local cluster's own work: by default it samples stacks and clocks a hundred times a second in
each process, which costs the coordinator alone 5 % of a core."""


def require_distributed() -> None:
    try:
        import distributed  # noqa: F401  # that it is there is what is asked
    except ImportError as error:
        text = "dask.distributed is not installed: pip install 'p2smt[cluster]'"
        raise BackendError(text) from error


@contextmanager
def local_cluster(processes: int) -> Iterator[str]:
    """Address of a scheduler with so many workers of one thread, all on the loopback address.

    The first death of a worker is told, not tried again: the coordinator counts deaths.

    Raises:
        ExecutionError: it does not start in the time that Dask gives it.
    """
    import dask

    with dask.config.set(SPARING), _cluster(processes) as cluster:
        yield cluster.scheduler_address


def _cluster(processes: int) -> LocalCluster:
    from distributed import LocalCluster

    try:
        return LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            host=HERE,
            dashboard_address=f"{HERE}:0",
            worker_dashboard_address=f"{HERE}:0",
            scheduler_kwargs={"allowed_failures": 0},
            silence_logs=logging.CRITICAL,
        )
    except (OSError, RuntimeError) as error:  # a TimeoutError is an OSError
        reason = str(error) or type(error).__name__
        text = f"a Dask cluster of {processes} workers does not start on this machine ({reason})"
        raise ExecutionError(f"{text}: ask for fewer, or give --engine processes") from error


@contextmanager
def connected(address: str, direct: bool) -> Iterator[Client]:
    """A connection to a scheduler that has workers; ``direct``: they can be reached from here.

    Raises:
        InputError: it does not answer, or has none.
    """
    import dask
    from distributed import Client

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    limit = dask.config.set({"distributed.comm.timeouts.connect": CONNECT_S})
    with limit, ExitStack() as stack:
        try:
            with ThreadPoolExecutor(1) as apart:  # this thread may run an event loop
                apart.submit(asyncio.run, _answers(address)).result()
            client = stack.enter_context(
                Client(address, timeout=CONNECT_S, set_as_default=False, direct_to_workers=direct)
            )
        except (OSError, ValueError, TypeError) as error:  # the last: TLS that is not set up
            rule = f"does not answer within {CONNECT_S:.0f} s ({str(error) or 'silence'})"
            remedy = "start `dask scheduler`, and give the address that it prints"
            raise InputError(f"scheduler {address}", rule, remedy) from error
        client.loop.asyncio_loop.set_exception_handler(_note)
        try:
            client.wait_for_workers(1, timeout=CONNECT_S)
        except TimeoutError as error:
            remedy = f"start some: `dask worker {address} --nthreads 1`"
            raise InputError(f"scheduler {address}", "has no worker", remedy) from error
        yield client


def _note(_: object, context: Mapping[str, object]) -> None:
    """What nobody awaits in Dask's own thread: the end of a worker, which is told as such."""
    logging.getLogger("distributed").debug("%s", context)


async def _answers(address: str) -> None:
    """Return once a scheduler answers: ``Client`` waits forever for a server that is silent.

    Raises:
        OSError: it does not answer in time.
        ValueError: this is no address.
    """
    from distributed import Security
    from distributed.comm import connect

    arguments = Security().get_connection_args("client")
    comm = await asyncio.wait_for(connect(address, CONNECT_S, **arguments), CONNECT_S)
    comm.abort()


def tell_workers(client: Client, function: Callable[..., None], *arguments: object) -> None:
    """Call a function on all workers; of those that are gone, or of all, none hears."""
    with suppress(Exception):  # Dask has several for a cluster that is no more
        client.run(function, *arguments, on_error="ignore")


def versions_of(client: Client, workers: list[str]) -> dict[str, dict[str, str] | BaseException]:
    """The versions of these workers, or why they could not tell them."""
    return dict(client.run(greeting, workers=workers, on_error="return"))


# Messages to all workers, sent by a thread: whoever has one does not wait for the slowest.


CutoffMessage = tuple[Member | None, bool]
"""A new cutoff, and whether the search has ended."""


@contextmanager
def sent(
    send: Callable[[Member | None, bool], None], patience_s: float
) -> Iterator[queue.SimpleQueue[CutoffMessage | None]]:
    """Where messages are put; ``send`` takes each in its turn, in another thread.

    At the end those that are left are sent, for so many seconds.
    """
    messages: queue.SimpleQueue[CutoffMessage | None] = queue.SimpleQueue()

    def work() -> None:
        while (message := messages.get()) is not None:
            send(*message)

    thread = threading.Thread(target=work, name="p2smt-broadcast", daemon=True)
    thread.start()
    try:
        yield messages
    finally:
        messages.put(None)
        thread.join(patience_s)


# Which worker of a cluster has which cubes: the one that it closes, and those at hand after it.


@dataclass(frozen=True, slots=True)
class Given:
    """A cube that a worker has: ``key`` and the future of Dask, the how manieth of the search."""

    task: SubproblemTask
    worker: str
    key: str
    number: int
    future: Future


class Hands:
    """Cubes that are out.  A worker closes them in the order in which they were given to it."""

    def __init__(self) -> None:
        self._given: dict[str, Given] = {}
        self._died: dict[str, int] = {}  # the last cube that a worker had when it was gone
        self._last: dict[str, int] = {}  # that a worker was given

    def __iter__(self) -> Iterator[Given]:
        return iter(tuple(self._given.values()))

    def add(self, given: Given) -> None:
        """A worker got a cube."""
        self._given[given.key] = given
        self._last[given.worker] = given.number

    def take(self, key: str) -> Given | None:
        """The cube of a key comes back; None: it is not out any more."""
        return self._given.pop(key, None)

    def counts(self) -> Counter[str]:
        """How many cubes each worker has."""
        return Counter(given.worker for given in self._given.values())

    def behind(self) -> Given | None:
        """The last cube that waits at its worker for another one."""
        counts = self.counts()
        last_first = reversed(self._given.values())
        return next((given for given in last_first if counts[given.worker] > 1), None)

    def lost(self, given: Given) -> WorkerDied | NotBegun:
        """What became of a cube that was taken, since its worker is gone.

        The worker was at the first of those that it had.  Another one may come by its address.
        """
        before = (one.worker == given.worker and one.number < given.number for one in self)
        if given.number <= self._died.get(given.worker, 0) or any(before):
            return NotBegun(given.task.cube)
        self._died[given.worker] = self._last[given.worker]
        return WorkerDied(given.task.cube)
